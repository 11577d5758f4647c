// The buffers of a socket as Linux sizes and fills them (net/ipv4/tcp_input.c, tcp_output.c, net/core/sock.c, stream.c;
// behaviour). Buffers count what packets take in memory, not their payload. In bytes.
#pragma once
#include <memory>

#include "netbuf/app.h"
#include "netbuf/host.h"
#include "netbuf/ring.h"

namespace netbuf {

class Sender;
class Receiver;

// What a packet takes that has come from a network, and what holds data that is to be sent, beside the data.
int64_t packet_truesize(uint32_t payload);
// MAX_TCP_HEADER: of kernels without wireless or tunnel options; else 320.
inline constexpr int64_t kHeaderRoom = 256;
inline constexpr int64_t kSharedInfo = 320, kPacketHead = 256;  // skb_shared_info, sk_buff, with their alignment
inline constexpr int64_t kWriteBytes = 65536;   // that applications write at once
// Of the largest packet that data is written into: whole segments, at most what segmentation offload takes and half the
// largest window advertised (tcp_send_mss); largest_window = 0: nothing is known of it.
int64_t written_packet_bytes(uint32_t mss, int64_t largest_window);
inline constexpr int64_t kSendOverhead = kHeaderRoom + kSharedInfo + kPacketHead;

// Stands between an application and its sender: what has been written and is not yet acknowledged.
class SendBuffer final : public Source {
 public:
  // device: the link that is the host's ring, where the flow crosses it first; else null.
  SendBuffer(Host& host, Sender& sender, const FlowConfig& config, uint32_t mss, const Link* device);
  ~SendBuffer() override;
  SendBuffer(const SendBuffer&) = delete;
  SendBuffer& operator=(const SendBuffer&) = delete;

  void attach(std::unique_ptr<Source> application) {
    application_ = std::move(application), wanted_ = 0, closed_ = false;
  }
  Offer offer(Time now, int64_t sent) override;      // the application writes what there is room for
  void stop();                                       // it writes no more
  void failed(Time now) override;                    // all is given back

  // Where the sender stands.
  struct Position {
    Time now;
    int64_t una, sent;                               // bytes of the stream
    uint32_t segment;                                // the oldest that is not acknowledged
    uint32_t cwnd_packets, in_flight;
    int64_t largest_window;                          // that the other end has advertised
  };
  void acknowledged(const Position& at);             // gives back what held it
  void sent(Time now, uint32_t first, uint32_t count, uint32_t burst);  // new segments, cut into bursts
  // Until when, for what it has in the device; 0: not at all. rate: bytes a second.
  Time held_back(Time now, double rate);
  void left(const Position& at, bool cwnd_limited);  // something new has
  bool wakes(const Position& at);                    // whether the application, which waited, is to write on
  // What limits from now on; open: the rest of the other end's window.
  void note(const Position& at, int64_t open);

  enum class State : uint8_t { idle, busy, window_limited, buffer_limited };
  bool measures_rate() const { return host_.agent_controlled(); }
  bool open() const { return open_; }
  bool closed() const { return over_; }
  bool waits() const { return waits_; }              // the application, for room
  int64_t limit() const { return limit_; }           // sk_sndbuf
  int64_t queued() const { return queued_; }         // sk_wmem_queued
  int64_t unsent() const { return written_ - sent_; }
  const Sender& sender() const { return sender_; }
  Sender& sender() { return sender_; }
  SendShare share(Time now) const;                   // of the interval
  SendShare whole(Time now) const;                   // of its life
  void begin_interval(Time now) { mark_ = whole(now); }
  Time spent(State state, Time now) const {
    return clock_[static_cast<size_t>(state)] + (state == state_ ? now - since_ : 0);
  }
  size_t memory_bytes() const;

  uint32_t place = 0;                                // among its host's

 private:
  void begin(Time now);
  void expand();
  void write(Time now);
  bool squeezes(int64_t more);
  bool free_for_write() const;
  bool has_room() const;
  void count(Time now);

  Host& host_;
  Sender& sender_;
  std::unique_ptr<Source> application_;              // null: TCP knows the stream
  int64_t wanted_;                                   // of the stream, by the application
  bool closed_, locked_, open_ = false, over_ = false;  // locked: an explicit buffer
  // Of the application: it waits for room, was refused memory, pauses for packets to leave; and whether they do not.
  bool waits_ = false, refused_ = false, pauses_ = false, held_ = false;
  // The kernel's: somebody was told that there is no room (SOCK_NOSPACE), and the connection was short of data by it.
  bool no_space_ = false, starved_ = false;
  bool known_ = false;                               // what the other end advertises
  uint32_t mss_;
  int64_t limit_ = 0, explicit_;
  int64_t written_ = 0, una_ = 0, sent_ = 0, queued_ = 0, pages_ = 0;
  int64_t since_asked_ = 0;                          // written since the application last asked for room
  uint32_t cwnd_packets_ = 10, in_flight_ = 0;
  int64_t largest_window_ = 0, packet_bytes_;        // packet_bytes: of the largest that data is written into
  Ring<uint32_t> bursts_;                            // in flight: the segment after each
  struct Leaving {
    Time at;
    int64_t bytes;
  };
  const Link* device_;
  Ring<Leaving> in_device_;
  int64_t device_bytes_ = 0;
  State state_ = State::idle;
  Time since_ = 0, opened_ = 0, ended_ = kNever;
  Time clock_[4] = {};
  SendShare mark_;
};

// What has arrived and was not read, and the window that this leaves.
class ReceiveBuffer {
 public:
  ReceiveBuffer(Host& host, const Receiver& receiver, const FlowConfig& config, uint32_t mss);
  ~ReceiveBuffer();
  ReceiveBuffer(const ReceiveBuffer&) = delete;
  ReceiveBuffer& operator=(const ReceiveBuffer&) = delete;

  void begin(Time now);                              // the SYN has come: as the settings are then
  void end(Time now);
  void abandon(Time now);                            // the connection was reset
  bool admits(uint32_t bytes, bool next, int64_t unread);  // whether there is memory for a packet; next: in order
  // A packet has arrived; waiting: bytes in the buffer as the window grows; then, unread: in order, held: beyond a hole.
  // True if it is acknowledged at once.
  bool arrived(Time now, uint32_t bytes, int64_t waiting, int64_t unread, int64_t held);
  void hold(Time now, int64_t unread, int64_t held);
  // A round trip in which the application has read so much; unread: what it has left.
  void round(int64_t read, int64_t unread, int64_t beyond);
  void reordered(int64_t beyond);                    // bytes from the first hole to the end of what has come
  int64_t window(int64_t unread, int64_t held) const;

  bool open() const { return open_; }
  int64_t limit() const { return limit_; }           // sk_rcvbuf
  int64_t queued() const { return queued_; }         // sk_rmem_alloc
  const Receiver& receiver() const { return receiver_; }
  uint32_t place = 0;                                // among its host's

 private:
  int64_t window_of(int64_t space) const { return space * ratio_ >> 8; }
  int64_t space_of(int64_t window) const { return (window << 8) / ratio_; }
  int64_t memory_of(int64_t payload) const { return payload > 0 ? (payload * truesize_ + mss_ - 1) / mss_ : 0; }
  void grow_to(int64_t wanted);

  Host& host_;
  const Receiver& receiver_;
  bool locked_, open_ = false, abandoned_ = false, measured_ = false;
  uint32_t mss_, scale_ = 0;
  int64_t truesize_, ratio_ = 128;                   // of 256: what of the buffer may be payload
  int64_t limit_ = 0, explicit_, clamp_ = 0, offered_ = 0, space_ = 0;  // window_clamp, rcv_ssthresh, rcvq_space.space
  int64_t queued_ = 0, pages_ = 0;
};

}  // namespace netbuf
