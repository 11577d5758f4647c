// The description of a world as the core takes it: plain data, checked by validate().
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "netbuf/tcp.h"
#include "netbuf/types.h"

namespace netbuf {

// A random delay of each packet on top of propagation (wire.h).
struct JitterConfig {
  std::string distribution;                // uniform, exponential, normal, pareto; empty: no jitter
  double scale_ns = 0, mean_ns = 0;        // mean: normal only
  double shape = 3;                        // pareto only
  double correlation = 0;                  // of each packet's jitter with the one before
  bool reorder = false;                    // packets may overtake each other
};

struct LinkConfig {
  std::string name;
  double rate_bps = 0;                     // 0: infinitely fast
  Time delay_ns = 0;                       // propagation, after transmission
  int64_t queue_limit_packets = 0;         // 0: no limit; the packet in service does not count
  int64_t queue_limit_bytes = 0;           // 0: no limit
  double loss = 0;                         // Bernoulli, after transmission: a lost packet has used its link time
  std::vector<double> ge;                  // Gilbert-Elliott: P(good->bad), P(bad->good), loss in good, loss in bad
  std::vector<uint64_t> loss_list;         // scripted: numbers (from 0) of those packets that random loss may hit
  bool loss_on_acks = false;               // random loss hits ACKs too
  std::vector<Time> schedule_time_ns;      // stepped rate (capacity.h)
  std::vector<double> schedule_rate_bps;
  Time schedule_period_ns = 0;             // 0: the last rate holds
  std::vector<Time> trace_ns;              // Mahimahi delivery opportunities of 1504 bytes each
  uint32_t trace_packet_bytes = 0;         // that every packet takes of them beside its own
  Time trace_period_ns = 0;                // the trace repeats with this period
  // What manages the queue; empty: first in, first out, without events of its own.
  std::string discipline;
  std::map<std::string, double> discipline_parameters;
  int64_t device_packets = 0;              // that the device holds behind the discipline, beside the one in service
  // Propagation that changes (wire.h); delay_ns is the least of it then.
  std::vector<Time> delay_time_ns, delay_step_ns;
  Time delay_period_ns = 0;                // 0: the last delay holds
  bool delay_reorders = false;             // what sets out after a fall of the delay may overtake
  std::vector<Time> loss_time_ns;          // loss that changes, instead of loss
  std::vector<double> loss_step;
  Time loss_period_ns = 0;
  JitterConfig jitter;
  Time outage_ns = 0;                      // a stretch without service that is as long empties the queue; 0: never
  double duplicate = 0, corrupt = 0;       // shares of all packets, before the queue (netem.h)
  // What transmits instead of the link (medium.h); links that say the same of it share one. Empty: the link itself.
  std::string medium;
  std::map<std::string, double> medium_parameters;  // those that are not at their defaults
  bool uplink = false;                     // from a station or user to the access point or base station
  double gain_db = 0;                      // of this link's channel, on top of what the medium says of all
};

// Links whose queues share one buffer. The unit of capacity, thresholds and queue_cap is packets, or bytes on the wire.
struct SwitchConfig {
  std::string name;
  std::vector<uint32_t> ports;             // links
  uint32_t queues = 1;                     // priorities at every port
  int64_t capacity = 0;
  bool in_bytes = false;
  std::string admission = "dynamic";       // static, dynamic, abm, agent
  std::vector<double> alphas, betas;       // one a queue; betas: agent only, empty = 1
  std::vector<int64_t> thresholds;         // static only
  // That no queue exceeds, whatever its threshold (but see protect_syn); 0: none.
  int64_t queue_cap = 0;
  // Which packet goes when a queue may not grow: tail (the one that arrives), head.
  std::string drop = "tail";
  int64_t mark = 0;                        // flows that speak ECN are marked where a queue is longer; 0: never
  // What becomes of them where a queue may not grow but the buffer has room: drop, mark.
  std::string congested = "drop";
  bool protect_syn = false;                // packets that open connections meet neither thresholds nor queue_cap
  std::string scheduler = "round_robin";   // round_robin (by packet), drr, strict_priority
  std::vector<int64_t> quanta;             // drr only: bytes a round
  // A table of flows for each queue of each port, so many slots that flows are hashed to; 0: none.
  uint32_t flow_slots = 0;
  // Who of a queue with a table is sent next: fifo, or drr over slots, new ones first (RFC 8290).
  std::string flow_service = "drr";
  int64_t flow_quantum = 1514;             // bytes that a slot may send in a turn
  std::string victims = "any";             // whom drops and marks hit: any, or slots with more than a fair share (large)
};

// Settings of a connection, or of all at a host. What is not set is as the host or the world has it; an option of the
// handshake is used where neither the connection nor a host at its ends is without it (RFC 7323, 1.3; RFC 2018, 2).
struct TcpSettings {
  Time max_rto_ns = 0;                     // 0: not set
  std::optional<bool> slow_start_after_idle, window_scaling, timestamps, sack;
};

// What the sockets of a host are given and may take. Bytes.
struct HostConfig : TcpSettings {
  std::string name;
  std::array<int64_t, 3> tcp_rmem{4096, 131'072, 6'291'456};  // least, initial, largest by autotuning
  std::array<int64_t, 3> tcp_wmem{4096, 16'384, 4'194'304};
  int64_t socket_bytes = 212'992;          // the largest explicit buffer (net.core.rmem_max and wmem_max)
  std::vector<int64_t> tcp_mem;            // of all sockets: low, pressure, high; empty: never limits
  std::vector<uint32_t> devices;           // links whose queue is its ring
  int64_t ring_packets = 0;                // 0: as the links say
  Time ring_stall_ns = 2'100'000'000;      // a resize lets nothing leave for so long
  int64_t notsent_lowat_bytes = 0;         // 0: never limits, likewise below
  int64_t limit_output_bytes = 0;
  bool moderate_rcvbuf = true;
  bool polls = true;                       // its applications ask for room between writes
  uint32_t kernel = 6018;                  // version: 1000 times major, and minor
  bool agent = false;                      // sets what of this can be set
};

// Where a connection's packets and ACKs go from a time on.
struct RouteConfig {
  Time from_ns = 0;
  std::vector<uint32_t> path, return_path; // link indices
};

// What a video client plays, and how.
struct VideoConfig {
  std::vector<double> bitrate_bps;         // rising
  Time chunk_ns = 4 * kSecond;             // of video in a chunk
  Time buffer_ns = 30 * kSecond;           // of video that it holds at most
  Time startup_ns = 4 * kSecond;           // of video that there must be for it to play, again too
  std::string abr = "rate";                // a bitrate rule
  uint32_t window_chunks = 5;              // rate: that it has the throughput from
  double safety = 0.85;                    // rate: share of the throughput that the bitrate may be
  Time reservoir_ns = 0, cushion_ns = 0;   // buffer
};

struct FlowConfig : TcpSettings {
  std::string cc = "cubic";
  std::map<std::string, double> cc_parameters;  // those that are not at their defaults
  // A congestion control that is not the core's; cc is what it is called then.
  // One for each connection; called by many threads.
  std::function<std::unique_ptr<CongestionControl>(Stack)> own_control;
  bool controlled = false;                 // an agent sets cwnd
  // Both ends speak ECN (RFC 3168); a congestion control may want it in any case.
  bool ecn = false;
  bool ecn_counts = false;                 // of these, its receiver tells how many packets were marked (RFC 9768)
  std::vector<uint32_t> path, return_path; // link indices
  // That replace them, in order of time; what is on its way goes on where it is.
  std::vector<RouteConfig> routes;
  Time start_ns = 0, stop_ns = 0;          // stop 0: never
  std::string app = "bulk";                // bulk, sized, on_off, paused, video
  // paused: it rests from the first to the second, from the third to the fourth, ...
  std::vector<Time> rest_ns;
  std::string misbehaviour;                // of the receiver: optimistic, split, spoofed (receiver.h); empty: none
  std::vector<VideoConfig> video;          // one where app is video
  int64_t size_bytes = 0;
  Time on_ns = 0, off_ns = 0;              // on_off: (mean) period lengths
  bool random_on_off = false;              // exponential periods
  double app_rate_bps = 0;                 // while on; 0: as fast as TCP takes it
  int64_t send_buffer_bytes = 0, receive_buffer_bytes = 0;  // 0: never limits
  int32_t sender_host = -1, receiver_host = -1;  // indices; -1: no host, whose buffers are as above
  // Explicit buffers at hosts (SO_SNDBUF, SO_RCVBUF); 0: the kernel's own.
  int64_t sndbuf_bytes = 0, rcvbuf_bytes = 0;
  int64_t window_clamp_bytes = 0;          // the receiver advertises no more than this; 0: no clamp
  std::string receiver;                    // receiver control, which limits what is advertised; empty: none
  std::map<std::string, double> receiver_parameters;  // those that are not at their defaults
  Time clock_offset_ns = 0;                // the receiver's clock is ahead of the sender's by so much at the start,
  double clock_drift_ppm = 0;              // and gains so much
  Time timestamp_ns = 1'000'000;           // unit of time stamps
  // How often what the receiver control says is set by TCP_WINDOW_CLAMP, as Linux takes it; 0: with every packet;
  // -1: the control is code in the kernel, whose word is the window.
  Time clamp_interval_ns = -1;
  double read_bps = 0;                     // the application reads at this rate; 0: at once
  int32_t relay_from = -1;                 // index of the flow whose received bytes this one sends on; -1: none
  int64_t relay_buffer_bytes = 0;          // what the relay holds at most between the two
  uint32_t initial_cwnd_packets = 10;
  uint32_t priority = 0;                   // its queue at every switch
  // Of a sender of traffic: the leg that its flows are relayed over, one at most.
  // It begins at the host where the first leg ends.
  std::vector<FlowConfig> relay;
};

// A distribution (law.h).
struct LawConfig {
  std::string kind = "constant";           // constant, exponential, pareto, lognormal, weibull, points, mixed
  double scale = 0, shape = 0;
  double low = 0, high = std::numeric_limits<double>::infinity();
  std::vector<double> values, cumulative;  // points; cumulative: mixed too
  std::vector<LawConfig> parts;            // mixed
};

// Flows that are opened as time goes on.
struct ArrivalsConfig {
  std::string kind = "poisson";            // poisson, incast, list, renewal, web
  Time start_ns = 0, stop_ns = 0;          // stop 0: never
  double rate_per_s = 0;                   // poisson: of all senders together
  std::vector<double> size_bytes;          // poisson: points of the size distribution; incast: the one size
  std::vector<double> cumulative;          // poisson: probability of at most size_bytes, linear in between; ends at 1
  Time interval_ns = 0;                    // incast: between bursts; the mean of it when random
  bool random = false;                     // incast: exponential intervals
  uint32_t fan_in = 0;                     // incast: senders that start at once
  std::vector<Time> list_start_ns;         // list, in order of time
  std::vector<uint32_t> list_sender, list_priority;
  std::vector<int64_t> list_size;
  std::vector<LawConfig> laws;             // renewal: gaps, sizes; web: WebLaw (traffic.h)
  uint32_t users = 0, connections = 0;     // web; connections of a page at once, 0: one for all that is on it
};

struct TrafficConfig {
  std::vector<FlowConfig> senders;         // what their flows have in common; app and start do not count
  std::vector<ArrivalsConfig> arrivals;
  std::vector<int64_t> priority_below;     // ascending sizes: a drawn flow's priority is how many of them it reaches
};

// A packet sent now and then, to see how long it takes.
struct ProbeConfig {
  std::vector<uint32_t> path;
  uint32_t priority = 0;
  Time interval_ns = kSecond, start_ns = 0;
  uint32_t bytes = 64;                     // on the wire
};

// Datagrams that nothing answers.
struct UdpConfig {
  std::vector<uint32_t> path;
  double rate_bps = 0;                     // on the wire, while on
  uint32_t bytes = 1500;                   // of a packet on the wire
  Time start_ns = 0, stop_ns = 0;          // stop 0: never
  Time on_ns = 0, off_ns = 0;              // (mean) period lengths; 0: always on
  bool random_on_off = false;              // exponential periods
  uint32_t priority = 0;                   // its queue at every switch
  bool poisson = false;                    // exponential gaps
  std::vector<LawConfig> sizes;            // of packets, one at most; none: all have bytes, and none has more in any case
  std::vector<LawConfig> periods;          // on and off, or none: on_ns and off_ns; what they are is found running
  // A replay: when packets leave and how long they are; the rate and the periods do not count.
  std::vector<Time> replay_ns;             // after the start, in order
  std::vector<uint32_t> replay_bytes;
  Time replay_period_ns = 0;               // starts again with this period; 0: never
};

struct WorldConfig {
  std::vector<LinkConfig> links;
  std::vector<FlowConfig> flows;
  std::vector<SwitchConfig> switches;
  std::vector<TrafficConfig> traffic;      // at most one
  std::vector<ProbeConfig> probes;
  std::vector<UdpConfig> udp;
  std::vector<HostConfig> hosts;
  uint32_t mss = 0;                        // 0: the stack's own, likewise below
  Time min_rto_ns = 0, max_rto_ns = 0;
  uint32_t delayed_ack_packets = 0;
  uint32_t syn_retries = 0, data_retries = 0;  // Linux stack: tcp_syn_retries, tcp_retries2
  Time start_jitter_ns = 0;                // flows start so much later at most, each by its own draw
  Stack stack = Stack::linux_kernel;
  bool hystart = true;                     // of CUBIC's own kind
  bool hystart_plus_plus = false;          // Linux stack: RFC 9406, of whatever has slow start of the RFC's kind
  // Linux stack: flows that do not pace themselves are paced too (fq does that).
  bool pacing = false;
  bool slow_start_after_idle = true;       // Linux stack: windows restart after a time-out of silence
  // Linux stack: without the first (RFC 7323), windows end at 65,535 bytes; without the second, RTTs are those of what was
  // sent once; without the third (RFC 2018), losses are found by duplicate and partial ACKs.
  bool window_scaling = true, timestamps = true, sack = true;
  bool log_packets = false;                // keeps a PacketLog
};

// Throws std::invalid_argument with a message that names the field, its value and what would be valid.
void validate(const WorldConfig& config);

}  // namespace netbuf
