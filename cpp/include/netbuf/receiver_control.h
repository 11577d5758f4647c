// Receiver-side control: what limits the window that a receiver advertises, packet by packet. It knows what arrives at
// the receiver, on the receiver's own clock, and nothing else of the world.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "netbuf/catalogue.h"
#include "netbuf/parameter.h"
#include "netbuf/types.h"

namespace netbuf {

struct FlowConfig;

// What the receiving end knows when a data packet has arrived and been put in its place.
struct Arrival {
  Time now;                 // the receiver's clock
  Time unit;                // of time stamps: a millisecond or a microsecond
  uint32_t stamp;           // the packet's time stamp: the sender's clock in units, wraps (RFC 7323)
  uint32_t bytes;           // payload
  Time rtt;                 // since that ACK left whose time stamp this packet is the first to echo; negative: none
  int64_t delivered_bytes;  // in order so far
  int64_t buffered_bytes;   // held: not read by the application yet, or beyond a hole
  int64_t window_bytes;     // as last advertised, what has arrived in order since taken off
  uint32_t missing;         // segments that it left out, newly
  bool repeated;            // older than the newest segment, yet with a newer time stamp: sent again
  bool late = false;        // older than the newest segment, with an older time stamp: overtaken on the way
};

// What a control is made for.
struct ReceiverSetting {
  const Parameters& parameters;
  uint32_t mss;
  int64_t buffer_bytes;     // of the receiver; 0: never limits
};

class ReceiverControl {
 public:
  virtual ~ReceiverControl() = default;
  virtual int64_t initial_window() const = 0;                               // bytes, in the SYN/ACK
  // Bytes that the window may hold from now on. A window once advertised is not taken back (RFC 9293, 3.8.6): a smaller
  // answer lets it close as data arrives.
  virtual int64_t window(const Arrival& arrival) = 0;

  // What an application may learn of it: the window that it steers, bytes, and the last round trip;
  // negative: not known.
  virtual double steered_bytes() const { return -1; }
  virtual Time round_trip() const { return -1; }

  // Whether the window stands for what is in the network:
  // then what is held beyond a hole is not part of it, and goes on top.
  bool counts_network() const { return counts_network_; }

 protected:
  bool counts_network_ = false;
};

// What the file of a receiver control ends in: an Entry of one of these.
struct ReceiverControlRecord {
  static constexpr std::string_view kWhat = "receiver control";

  std::string_view name, meaning;
  std::unique_ptr<ReceiverControl> (*make)(const ReceiverSetting&);
  std::vector<Parameter> parameters = {};
  bool agent = false;       // an agent of the kind "receiver" sets what it does
};

// For records.
template <class Control>
std::unique_ptr<ReceiverControl> make_receiver(const ReceiverSetting& setting) {
  return std::make_unique<Control>(setting);
}

// Null: nothing but the buffer limits.
// Throws std::invalid_argument: a name or a parameter that is not there, or out of range.
std::unique_ptr<ReceiverControl> make_receiver_control(const FlowConfig& config, uint32_t mss,
                                                       const std::string& field = "receiver");
void check_receiver_control(const FlowConfig& config, const std::string& field);

}  // namespace netbuf
