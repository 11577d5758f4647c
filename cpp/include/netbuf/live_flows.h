// The connections of a world over kernel sockets: opened, written, read and closed when the simulator's would be, by
// one thread that sleeps in epoll, with a priority next to the emulator's: a sender whose application is not run has
// nothing to send. Each route has its own pair of addresses, and a listening socket at its receiver's.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "netbuf/app.h"
#include "netbuf/emulator.h"
#include "netbuf/ideal.h"
#include "netbuf/flow_arrivals.h"
#include "netbuf/switch_telemetry.h"
#include "netbuf/traffic.h"

namespace netbuf {

// What the sockets of a flow, or of all flows of a sender, are given. 0: as the namespace has it.
struct LiveSocket {
  uint32_t route = 0;
  std::string cc;                    // of the kernel's; empty: the namespace's default
  int64_t send_buffer_bytes = 0, receive_buffer_bytes = 0;  // SO_SNDBUF, SO_RCVBUF
  int64_t asked_send_bytes = 0;      // what send_buffer_bytes would be without the cap of the sender's host
  int64_t window_clamp_bytes = 0;    // TCP_WINDOW_CLAMP of the receiver
  int64_t notsent_lowat_bytes = 0;
  int64_t pacing_bytes_per_s = 0;    // SO_MAX_PACING_RATE
  bool polls = true;                 // the writer asks for room between writes
  bool limited = false;              // what is written and not acknowledged is kept to a window from user space
  int64_t window_bytes = 0;          // that window, until it is set; 0: none
};

struct LiveFlowStats {
  Time start = 0, completed = kNever;
  bool connected = false;
  int64_t written_bytes = 0, delivered_bytes = 0;
  double cwnd_integral_byte_s = 0;   // of the sender's window, looked at every so often
  std::vector<double> info;          // the sender's TCP_INFO when it was last looked at; empty: never
  Time failed = kNever;              // its connection was given up, or reset
  std::string failure;               // why; where it has not failed: why it could not be opened
};

class LiveFlows {
 public:
  struct Setting {
    WorldConfig world;
    uint64_t seed = 0;
    std::vector<int> namespaces;     // network namespaces, a descriptor for each node; the caller's
    std::vector<LiveSocket> flows;
    // Of each sender of the traffic: the leg that it sends on, then its relay's, where it has one.
    std::vector<LiveSocket> senders;
  };

  // std::invalid_argument: settings that do not fit the world. The emulator must outlive it.
  LiveFlows(const Setting& setting, Emulator& emulator);
  ~LiveFlows();
  LiveFlows(const LiveFlows&) = delete;
  LiveFlows& operator=(const LiveFlows&) = delete;

  void listen();                     // before the start; std::system_error with what the kernel refuses
  void start();                      // with the emulator's clock
  void stop();                       // closes all sockets, without a goodbye
  std::string failure() const { return thread_.failure(); }

  using Guard = std::unique_lock<PriorityLock>;
  Guard hold() { return Guard(lock_); }
  const std::vector<LiveFlowStats>& flows() const { return flow_stats_; }
  // received_bytes is up to date, slot means nothing.
  const std::vector<OpenedFlow>& opened() const { return opened_; }
  const std::vector<Completion>& completions() const { return completions_; }
  int64_t delivered_bytes() const { return delivered_; }  // to all receiving applications
  int64_t traffic_delivered_bytes() const { return traffic_delivered_; }
  uint64_t connected() const { return connected_; }      // of the traffic
  uint64_t failed() const { return failed_; }            // likewise: could not be opened, or whose connection failed
  // Streams of a known size that a node has sent or received to their end,
  // static flows' and each leg's of the traffic's.
  uint64_t completed_at(uint32_t node) const { return completed_at_.at(node); }
  void look();                                           // at the flows' TCP_INFO, now
  void look(uint32_t flow);                              // at one flow's
  // A decision interval; std::out_of_range: there is no such switch.
  void begin_switch(uint32_t sw);
  std::vector<double> observe_switch(uint32_t sw);       // since then, by switch_fields()
  bool switch_changed(uint32_t sw);                      // SharedBuffer::take_change()
  size_t open_connections() const { return places_.size() - free_.size(); }
  int sender_fd(uint32_t flow) const;    // -1: not open; the thread's own
  int receiver_fd(uint32_t flow) const;
  void set_window(uint32_t flow, double bytes);  // of a limited one
  // Of what connections that are opened from now on ask for at their sender's node.
  void cap_buffers(uint32_t node, int64_t bytes);
  // Of all connections that a node receives, now and from now on, but for those whose receivers are controlled.
  // How many there are.
  size_t clamp_windows(uint32_t node, int64_t bytes);
  // Of all connections that a node sends on, now and from now on, by the kernel's name (TCP_CONGESTION). How many there are;
  // std::runtime_error: the kernel has none of this name.
  size_t set_congestion_control(uint32_t node, const std::string& control);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  enum class Task : uint8_t { open, open_up, open_down, offer, read, window, look };
  struct Alarm {
    Time time;
    uint32_t place, generation;
    Task task;
    bool operator>(const Alarm& other) const { return time > other.time; }
  };
  // Two connections that a relay joins: what has arrived over one is written to the other as soon as there is room
  // between them. What does not fit stays unread, and closes the window of the first.
  struct Joint {
    int64_t buffer;
    uint32_t up = kNone, down = kNone;  // places, while the connections are there
    int64_t read = 0, written = 0;
    int opened = 0;                  // how many of them have been, of a flow of the traffic
    bool over = false;               // all of the first has been read
    bool broken = false;             // one of them has failed
    bool moving = false;
  };
  struct Connection {
    Descriptor sender, receiver;
    const LiveSocket* socket = nullptr;
    const FlowConfig* config = nullptr;
    uint32_t flow = kNone;           // index of a static flow
    uint32_t opened = kNone;         // or of one of traffic
    std::shared_ptr<Joint> feeds;    // where what is received goes on
    std::shared_ptr<Joint> fed;      // where what is sent comes from
    uint32_t key = 0;                // by which the receiving end is told
    int64_t size_bytes = 0;          // 0: no end of its own
    int64_t written = 0, received = 0;
    bool finished_writing = false, connected = false, blocked = false;
    Time offer_at = kNever, read_at = kNever, look_at = 0;  // when it is looked at again
    std::unique_ptr<Source> source;
    std::unique_ptr<Sink> sink;
  };
  struct Place {
    std::optional<Connection> connection;
    uint32_t generation = 0;
  };

  SwitchSeen seen();                         // the emulator is held
  void run();
  void enter(uint32_t node);
  void handle(uint64_t key, uint32_t events);
  void run_alarms(Time now);
  void set_timer();
  void alarm(Time time, uint32_t place, Task task);
  void open_flow(uint32_t flow, Time now);
  void open_arrival();
  void open_leg(uint32_t opened, Task which);
  void join(uint32_t place, std::shared_ptr<Joint> feeds, std::shared_ptr<Joint> fed);
  void pass_on(Joint& joint, Time now);      // what can be
  void break_relay(Joint& joint, int error); // one of its connections is not there: nor is the other from now on
  void part(const Connection& connection);
  void clamp(const Connection& connection) const;
  // Its place; kNone: the kernel refuses the connection, and trouble_ says why.
  uint32_t open(const FlowConfig& config, const LiveSocket& socket, uint32_t priority);
  uint32_t refused(const char* what);
  void accept(uint32_t listener);
  void write(uint32_t place, Time now);
  void read(uint32_t place, Time now);
  void note_received(Connection& connection, int64_t bytes, Time now);
  void sender_event(uint32_t place, uint32_t events, Time now);
  void fail(uint32_t place, int error, const char* what);
  void close_if_done(uint32_t place);
  void prepare(int fd, const LiveSocket& socket, bool receives) const;
  void watch(int fd, uint64_t key, uint32_t events) const;
  Time now() const { return emulator_.now(); }

  PriorityLock lock_;
  LiveThread thread_;
  Emulator& emulator_;
  WorldConfig world_;
  uint32_t mss_;
  std::vector<Route> routes_;
  std::vector<int> namespaces_;
  std::vector<LiveSocket> flow_sockets_, sender_sockets_;
  Rng rng_;
  std::vector<Link> links_;                  // their rates, for ideal times
  std::optional<IdealTimes> ideal_;
  std::vector<std::vector<uint32_t>> crossed_;
  std::vector<uint32_t> first_leg_;          // of each sender, in sender_sockets_
  std::vector<std::shared_ptr<Joint>> feeds_, fed_;  // of static flows; null: none
  // By the number of the opened flow, until both legs are.
  std::unordered_map<uint32_t, std::shared_ptr<Joint>> to_open_;
  std::vector<int64_t> clamps_;              // by node; 0: none
  std::vector<uint64_t> completed_at_;       // by node
  std::optional<Traffic> traffic_;
  Descriptor epoll_, timer_;
  uint32_t node_ = kNone;                    // where the thread is
  struct Listener {
    Descriptor fd;
    uint32_t route;
  };
  std::vector<Listener> listeners_;
  std::deque<Place> places_;
  std::vector<uint32_t> free_, ready_;
  std::priority_queue<Alarm, std::vector<Alarm>, std::greater<>> alarms_;
  std::unordered_map<uint32_t, uint32_t> awaited_;  // route << 16 | port: place
  std::vector<uint32_t> place_of_flow_;
  std::vector<LiveFlowStats> flow_stats_;
  std::vector<SwitchSeen> switches_;         // as their intervals began
  std::vector<double> windows_;
  std::vector<OpenedFlow> opened_;
  std::vector<Completion> completions_;
  std::vector<Time> looked_;                 // at each flow
  int64_t delivered_ = 0, traffic_delivered_ = 0;
  uint64_t connected_ = 0, failed_ = 0;
  std::string trouble_;
};

}  // namespace netbuf
