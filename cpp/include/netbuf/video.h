// A video client (DASH: MPEG Dynamic Adaptive Streaming over HTTP) and the server that it asks for chunks,
// over one connection.
#pragma once
#include <memory>
#include <vector>

#include "netbuf/app.h"

namespace netbuf {

class Receiver;

// What has been played by when. Times of video and of the clock alike are nanoseconds.
struct Playback {
  Time since = 0;                // up to when it is counted
  Time buffered = 0, played = 0; // of video
  Time stalled = 0;              // since the first frame
  Time delay = -1;               // from the flow's start to the first frame; negative: none yet
  uint32_t stalls = 0;
  bool playing = false;

  void advance(Time now);
};

struct Chunk {
  Time begun;                    // it was asked for
  Time first = -1, ended = -1;   // its first and its last byte arrived in order; negative: not yet
  int64_t bytes;
  double bitrate_bps;
  Time buffered;                 // as it was asked for
  // Of a receiver control that knows them, as it ended; negative: none does.
  double window_bytes = -1;
  Time rtt = -1;

  // What the client takes the path for: size over download time.
  double estimate_bps() const { return static_cast<double>(bytes) * 8e9 / static_cast<double>(ended - begun); }
};

// Which bitrate comes next.
class BitrateRule {
 public:
  struct State {
    const std::vector<double>& ladder;       // bit/s, rising
    const std::vector<Chunk>& chunks;        // all of them have ended
    Time buffered;
  };
  virtual ~BitrateRule() = default;
  virtual size_t next(const State& state) const = 0;   // an index into the ladder
};

struct BitrateRuleRecord {
  static constexpr const char* kWhat = "bitrate rule";

  std::string_view name, meaning;
  std::unique_ptr<BitrateRule> (*make)(const VideoConfig& config);
};

// The client, which the sink is, and what its server has been asked for.
class VideoClient final : public Sink {
 public:
  VideoClient(const FlowConfig& config, const Receiver& receiver);

  // ---- Sink
  void opened(Time now) override;
  int64_t read(Time now, int64_t arrived) override;
  Time next(Time now) const override;
  bool asks(Time now) override;

  // ---- results
  int64_t asked_bytes() const { return asked_bytes_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }   // the last of them may not have ended
  Playback playback(Time now) const;
  size_t memory_bytes() const override { return sizeof *this + chunks_.capacity() * sizeof(Chunk); }

 private:
  bool downloading() const { return !chunks_.empty() && chunks_.back().ended < 0; }
  Time at(Time now) const { return std::min(now, stop_); }
  void ask(Time now);
  void end_chunk(Time now);

  const VideoConfig config_;
  const Receiver& receiver_;
  std::unique_ptr<BitrateRule> rule_;
  Time start_, stop_, ask_at_ = kNever;
  int64_t asked_bytes_ = 0;
  Playback playback_;
  std::vector<Chunk> chunks_;
};

}  // namespace netbuf
