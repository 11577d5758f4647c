// Receiver-side control: what limits the window that a receiver advertises, packet by packet.
#pragma once
#include <cstdint>
#include <memory>

#include "netbuf/config.h"
#include "netbuf/packet.h"

namespace netbuf {

// What the receiving end knows when a data packet arrives.
struct ReceiverView {
  Time now;
  Time sent_at;             // when this copy of the packet left the sender, from its time stamp
  int64_t delivered_bytes;  // in order so far
  int64_t unread_bytes;     // of these, not yet read by the application
  int64_t window_bytes;     // as last advertised, what has arrived since taken off
  uint32_t mss;
};

class ReceiverControl {
 public:
  virtual ~ReceiverControl() = default;
  virtual int64_t initial_window() const = 0;                               // bytes, in the SYN/ACK
  // Bytes that the window may hold from now on. A window once advertised is not taken back (RFC 9293, 3.8.6): a smaller
  // answer lets it close as data arrives.
  virtual int64_t window(const ReceiverView& view, const Packet& packet) = 0;
};

std::unique_ptr<ReceiverControl> make_receiver_control(const FlowConfig& config);  // null: nothing but the buffer limits

}  // namespace netbuf
