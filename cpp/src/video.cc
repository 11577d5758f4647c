// A video client and its server.
//
// The client asks for a chunk at a time, whole chunks of one bitrate each, over a connection that stays open; the
// server sends what it is asked for when the request has come over the return path. In between nothing is sent, so
// that the server's TCP starts anew after a silence (RFC 5681, 4.1), as with HTTP. The next chunk is asked for once
// the one before is there and the client's buffer has room for another. It plays what it has, once there is enough of
// it; when nothing is left it stalls.
//
// The connection is opened by the server, as all are here, and the first request goes with the client's answer to the
// SYN: half a round trip earlier than that of a client that opens the connection itself, seen from its beginning.
#include "netbuf/video.h"

#include "netbuf/config_fields.h"
#include "netbuf/receiver.h"
#include "netbuf/reject.h"

namespace netbuf {

// ---- playing

void Playback::advance(Time now) {
  if (now <= since) return;
  const Time passed = now - since, shown = playing ? std::min(passed, buffered) : 0;
  buffered -= shown;
  played += shown;
  since = now;
  if (delay < 0 || shown == passed) return;
  stalled += passed - shown;
  stalls += playing;
  playing = false;
}

Playback VideoClient::playback(Time now) const {
  Playback then = playback_;
  then.advance(at(now));
  return then;
}

// ---- the client

VideoClient::VideoClient(const FlowConfig& config, const Receiver& receiver)
    : config_(config.video.front()),
      receiver_(receiver),
      rule_(Catalogue<BitrateRuleRecord>::get(config_.abr, "abr").make(config_)),
      start_(config.start_ns),
      stop_(config.stop_ns > 0 ? config.stop_ns : kNever) {
  playback_.since = start_;
}

void VideoClient::opened(Time now) { ask(now); }

int64_t VideoClient::read(Time now, int64_t arrived) {
  if (downloading() && now <= stop_) {
    Chunk& chunk = chunks_.back();
    if (chunk.first < 0 && arrived > asked_bytes_ - chunk.bytes) chunk.first = now;
    if (arrived == asked_bytes_) end_chunk(now);
  }
  return arrived;
}

void VideoClient::end_chunk(Time now) {
  Chunk& chunk = chunks_.back();
  chunk.ended = now;
  if (const ReceiverControl* control = receiver_.control()) {
    chunk.window_bytes = control->steered_bytes();
    chunk.rtt = control->round_trip();
  }
  playback_.advance(now);
  playback_.buffered += config_.chunk_ns;
  const Time excess = playback_.buffered + config_.chunk_ns - config_.buffer_ns;
  if (!playback_.playing && (playback_.buffered >= config_.startup_ns || excess > 0)) {
    playback_.playing = true;
    if (playback_.delay < 0) playback_.delay = now - start_;
  }
  ask_at_ = now + std::max<Time>(excess, 0);
}

Time VideoClient::next(Time) const { return ask_at_ < stop_ ? ask_at_ : kNever; }

bool VideoClient::asks(Time now) {
  if (now < ask_at_ || now >= stop_) return false;
  ask(now);
  return true;
}

void VideoClient::ask(Time now) {
  ask_at_ = kNever;
  playback_.advance(now);
  const double bitrate = config_.bitrate_bps[rule_->next({config_.bitrate_bps, chunks_, playback_.buffered})];
  Chunk chunk;
  chunk.begun = now;
  chunk.bitrate_bps = bitrate;
  chunk.bytes = std::max<int64_t>(1, std::llround(bitrate * seconds(config_.chunk_ns) / 8));
  chunk.buffered = playback_.buffered;
  asked_bytes_ += chunk.bytes;
  chunks_.push_back(chunk);
}

// ---- the server

namespace {

// Asked only when a request has come: all that the client has asked for, it has asked for by then.
class VideoServer final : public Source {
 public:
  explicit VideoServer(const VideoClient& client) : client_(client) {}
  Offer offer(Time, int64_t) override { return {client_.asked_bytes(), kNever, false}; }

 private:
  const VideoClient& client_;  // outlives it: both belong to one flow
};

void check(const FlowConfig& flow, const std::string& field) {
  if (flow.video.size() != 1) reject(field + ".video", flow.video.size(), "one setting for a video client");
  const VideoConfig& video = flow.video.front();
  const std::string at = field + ".video";
  if (video.bitrate_bps.empty()) reject(at + ".bitrate_bps", "[]", "at least one bitrate");
  check_fields(video, at);
  for (size_t i = 1; i < video.bitrate_bps.size(); ++i) {
    if (video.bitrate_bps[i] <= video.bitrate_bps[i - 1]) reject(at + ".bitrate_bps", video.bitrate_bps[i], "rising");
  }
  if (video.buffer_ns < video.chunk_ns) reject(at + ".buffer_ns", video.buffer_ns, "at least chunk_ns");
  if (video.startup_ns > video.buffer_ns) reject(at + ".startup_ns", video.startup_ns, "at most buffer_ns");
  Catalogue<BitrateRuleRecord>::get(video.abr, at + ".abr");
  if (!(video.safety > 0 && video.safety <= 10)) reject(at + ".safety", video.safety, "above 0, at most 10");
}

const Entry<Application> entry{{
    .name = "video",
    .answers = true,
    .check = check,
    .ends = [](const FlowConfig& flow, const Receiver& receiver) {
      auto client = std::make_unique<VideoClient>(flow, receiver);
      auto server = std::make_unique<VideoServer>(*client);
      return Ends{std::move(server), std::move(client)};
    },
}};

}  // namespace
}  // namespace netbuf
