// Applications as sources and sinks of a byte stream in virtual time.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "netbuf/catalogue.h"
#include "netbuf/config.h"
#include "netbuf/types.h"

namespace netbuf {

inline constexpr int64_t kEndless = int64_t{1} << 60;

// Writes the stream that a flow sends.
class Source {
 public:
  struct Offer {
    int64_t written = 0;   // bytes written to the socket so far; kEndless: always more
    Time next = kNever;    // when to ask again; kNever: not on its own account
    bool closed = false;   // written is the whole stream
  };
  virtual ~Source() = default;
  virtual Offer offer(Time now, int64_t taken) = 0;  // taken: bytes of it that the socket has
  virtual void taken(Time, int64_t) {}              // sent has grown: now, sent
  virtual void failed(Time) {}                      // the connection is no more
};

// Reads the stream that a flow receives. What it leaves unread closes the receive window;
// Receiver::wake_sink opens it again.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual int64_t read(Time now, int64_t arrived) = 0;  // bytes in order so far -> bytes read so far
  virtual void closed(Time) {}                          // all of the stream has arrived
  virtual void failed(Time) {}                          // the connection is no more, and it will not; told again
  virtual Time next(Time) const { return kNever; }      // when to ask again though nothing may have arrived
  // The connection has begun: what it wants at once goes with the answer.
  virtual void opened(Time) {}
  // Whether a request to the other end leaves now; each is told once.
  virtual bool asks(Time) { return false; }
  virtual size_t memory_bytes() const { return 0; }
};

class Receiver;

// An application at both ends: who writes answers who reads.
struct Ends {
  std::unique_ptr<Source> source;
  std::unique_ptr<Sink> sink;
};

// What an application is to its flow, by name.
struct Application {
  static constexpr const char* kWhat = "application";

  std::string_view name;
  bool endless = false;  // always more, until the flow is stopped
  bool sized = false;    // size_bytes, there from the start; closed with the last of them
  bool relays = false;   // its stream may be another flow's instead
  bool answers = false;  // it has both ends, and writes messages, whose last bytes wait for nothing
  // Own fields; throws.
  void (*check)(const FlowConfig& flow, const std::string& at) = [](const FlowConfig&, const std::string&) {};
  bool (*outruns)(const FlowConfig& flow) = [](const FlowConfig&) { return false; };  // would fill any rate and window
  std::unique_ptr<Source> (*source)(const FlowConfig& flow, uint32_t mss, Rng* rng) =  // null: TCP knows the stream
      [](const FlowConfig&, uint32_t, Rng*) { return std::unique_ptr<Source>(); };
  Ends (*ends)(const FlowConfig& flow, const Receiver& receiver) = nullptr;  // where it answers
};

// What reads at a rate; null: everything is read at once.
std::unique_ptr<Sink> reader_of(const FlowConfig& flow, uint32_t mss);

inline const Application& application_of(const FlowConfig& flow) {
  return Catalogue<Application>::get(flow.app, "app");
}

}  // namespace netbuf
