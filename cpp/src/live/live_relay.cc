// Arrivals of the traffic, and relays: two connections of which one sends on what the other has received.
// No byte is copied: all are 0.
#include <cerrno>

#include "netbuf/live_flows.h"

namespace netbuf {

// The legs of a relayed flow begin when those of the simulator do (see FlowArrivals::run).
void LiveFlows::open_arrival() {
  const FlowArrival arrival = traffic_->pop();
  const auto opened = static_cast<uint32_t>(opened_.size());
  opened_.push_back({arrival.start, arrival.sender, arrival.priority, arrival.size_bytes, 0, 0});
  const FlowConfig& sender = world_.traffic.front().senders[arrival.sender];
  if (sender.relay.empty()) return open_leg(opened, Task::open);
  to_open_[opened] = std::make_shared<Joint>(Joint{.buffer = sender.relay.front().relay_buffer_bytes});
  alarms_.push({arrival.start + ideal_->relay_opens(arrival.sender), opened, 0, Task::open_down});
  alarms_.push({arrival.start + ideal_->sender_opens(arrival.sender), opened, 0, Task::open_up});
}

void LiveFlows::open_leg(uint32_t opened, Task which) {
  const OpenedFlow& flow = opened_[opened];
  const FlowConfig& sender = world_.traffic.front().senders[flow.sender];
  std::shared_ptr<Joint> joint;
  if (which != Task::open) {
    joint = to_open_.at(opened);
    if (++joint->opened == 2) to_open_.erase(opened);
    if (joint->broken) return;
  }
  const bool down = which == Task::open_down;
  const uint32_t place = open(down ? sender.relay.front() : sender,
                              sender_sockets_[first_leg_[flow.sender] + down], flow.priority);
  if (place == kNone) {
    ++failed_;
    if (joint) break_relay(*joint, errno);
    return;
  }
  Connection& connection = *places_[place].connection;
  connection.opened = opened;
  connection.size_bytes = flow.size_bytes;
  join(place, down ? nullptr : joint, down ? joint : nullptr);
}

void LiveFlows::join(uint32_t place, std::shared_ptr<Joint> feeds, std::shared_ptr<Joint> fed) {
  Connection& connection = *places_[place].connection;
  if (feeds) feeds->up = place, connection.sink.reset();
  if (fed) fed->down = place;
  connection.feeds = std::move(feeds);
  connection.fed = std::move(fed);
}

// Its connections may end meanwhile.
void LiveFlows::pass_on(Joint& joint, Time now) {
  if (joint.moving) return;                  // further up the stack, where it goes on
  joint.moving = true;
  for (int64_t before = -1; before != joint.read + joint.written;) {
    before = joint.read + joint.written;
    if (joint.down != kNone) write(joint.down, now);
    if (joint.up != kNone) read(joint.up, now);
  }
  if (joint.over && joint.down != kNone) write(joint.down, now);  // its end
  joint.moving = false;
}

void LiveFlows::break_relay(Joint& joint, int error) {
  joint.broken = true;
  for (const uint32_t place : {joint.up, joint.down}) {
    if (place != kNone) fail(place, error, "the other connection of its relay");
  }
}

void LiveFlows::part(const Connection& connection) {
  if (connection.feeds) connection.feeds->up = kNone;
  if (connection.fed) connection.fed->down = kNone;
}

}  // namespace netbuf
