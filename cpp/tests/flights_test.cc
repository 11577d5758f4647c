#include <algorithm>
#include <array>
#include <vector>

#include "check.h"
#include "netbuf/flights.h"
#include "netbuf/rng.h"

using namespace netbuf;

namespace {

Flight flight(Time time, uint32_t flow, uint8_t stage, uint32_t number) {
  Flight one{};
  one.packet.time = time;
  one.packet.to = Destination(flow, stage).word();
  one.packet.segment = number;
  return one;
}

uint32_t pop(Flights& flights, uint32_t lane) {
  Flight flight;
  flights.pop(lane, flight);
  return flight.packet.segment;
}

// Random pushes and pops beside a list that is searched from end to end. delays: of so many kinds; every: to whole
// multiples of it, so that many of a stage arrive at one instant.
void compare_with_a_search(uint32_t flows, uint32_t delays, uint64_t seed, Time every = 1) {
  Flights flights;
  std::vector<Flight> model;
  std::vector<std::array<uint8_t, 2>> hints(flows, {0, 1});
  Rng rng(seed);
  Time now = 0;
  uint32_t number = 0;
  for (int step = 0; step < 30'000; ++step) {
    if (model.empty() || rng.uniform() < 0.52) {
      const uint32_t flow = rng.below(flows), stage = rng.below(2);
      const Time delay = 1000 * (1 + (flow * 7 + stage * 3) % delays);  // a flow's stage keeps its order
      const Flight one = flight((now + delay) / every * every, flow, static_cast<uint8_t>(stage), number++);
      flights.push(one, hints[flow][stage]);
      model.push_back(one);
    } else {
      const auto least = std::min_element(model.begin(), model.end(), [](const Flight& a, const Flight& b) {
        if (a.packet.time != b.packet.time) return a.packet.time < b.packet.time;
        if (a.packet.flow() != b.packet.flow()) return a.packet.flow() < b.packet.flow();
        return a.packet.stage() != b.packet.stage() ? a.packet.stage() < b.packet.stage()
                                                    : a.packet.segment < b.packet.segment;
      });
      const uint32_t lane = flights.first();
      CHECK_EQ(flights.next(), least->packet.time);
      CHECK_EQ(flights.time(lane), least->packet.time);
      CHECK_EQ(flights.front(lane).packet.segment, least->packet.segment);
      CHECK_EQ(flights.destination(lane).word(), least->packet.to);
      CHECK_EQ(pop(flights, lane), least->packet.segment);
      now = std::max(now, least->packet.time);
      model.erase(least);
    }
    if (rng.uniform() < 0.3) now += rng.below(300);
    if (check::failures) return;
  }
}

}  // namespace

TEST(nothing_is_on_its_way_at_first) {
  const Flights flights;
  CHECK_EQ(flights.next(), kNever);
}

TEST(one_flow_comes_in_order) { compare_with_a_search(1, 2, 1); }
TEST(a_few_runs_fill_the_lanes) { compare_with_a_search(64, 5, 2); }
TEST(more_runs_than_lanes_wait_in_the_heap) {
  compare_with_a_search(64, 40, 3);
  compare_with_a_search(500, 97, 4);
}

TEST(equals_leave_as_they_came_among_others) {
  for (uint32_t seed = 5; seed < 25; ++seed) compare_with_a_search(3 * seed, seed, seed, 500);
}

TEST(equals_leave_as_they_came) {
  Flights flights;
  uint8_t hint = 0;
  for (uint32_t i = 0; i < 40; ++i) flights.push(flight(100, 7, kAtReceiver, i), hint);
  for (uint32_t i = 0; i < 40; ++i) CHECK_EQ(pop(flights, flights.first()), i);
}

TEST(at_one_instant_lower_flows_and_stages_come_first) {
  Flights flights;
  uint8_t hint = 0;
  flights.push(flight(100, 2, kAtReceiver, 2), hint);
  flights.push(flight(100, 1, kAtSender, 1), hint);
  flights.push(flight(100, 1, kAtReceiver, 0), hint);
  for (uint32_t i = 0; i < 3; ++i) CHECK_EQ(pop(flights, flights.first()), i);
}

// Beside the same one by one, into lanes that are in use, and through the heap.
TEST(what_comes_second_in_a_lane_is_known) {
  Flights flights;
  uint8_t hint = 0;
  CHECK(!flights.second(flights.first()));
  for (uint32_t i = 0; i < 3; ++i) flights.push(flight(10 + i, i, kAtReceiver, i), hint);
  for (uint32_t left = 3; left > 0; --left) {
    const Flight* const second = flights.second(flights.first());
    CHECK_EQ(second != nullptr, left > 1);
    if (second) CHECK_EQ(second->packet.segment, 4 - left);
    pop(flights, flights.first());
  }
}

TEST(a_run_is_as_its_packets_one_by_one) {
  Flights runs, singles;
  uint8_t run_hints[20] = {}, hints[20] = {};
  Rng rng(5);
  uint32_t number = 0;
  for (int step = 0; step < 5000; ++step) {
    const uint32_t flow = rng.below(20), count = rng.below(6);
    const Time first = step * 100 + rng.below(4000), spacing = rng.below(3) * 50;
    const Destination to(flow, kAtReceiver);
    uint32_t next = number;
    runs.place_run(first, spacing, count, to, run_hints[flow], [&](Flight& flight) { flight.packet.segment = next++; });
    for (uint32_t i = 0; i < count; ++i) singles.place(first + i * spacing, to, hints[flow]).packet.segment = number++;
    CHECK_EQ(next, number);
    CHECK_EQ(run_hints[flow], hints[flow]);
    while (singles.next() <= step * 100) {
      const uint32_t lane = singles.first();
      CHECK_EQ(runs.first(), lane);
      CHECK_EQ(runs.next(), singles.next());
      CHECK_EQ(runs.destination(lane).word(), singles.destination(lane).word());
      CHECK_EQ(pop(runs, lane), pop(singles, lane));
    }
    if (check::failures) return;
  }
}

// Likewise a train, which is taken in parts, of packets no two of which coincide.
TEST(a_train_is_as_its_packets_one_by_one) {
  Flights trains, singles;
  uint8_t train_hints[20] = {}, hints[20] = {};
  Rng rng(6);
  for (uint32_t step = 0; step < 5000; ++step) {
    const uint32_t flow = rng.below(20), count = 1 + rng.below(6), segment = 100 * step;
    const Time spacing = 50, first = step * 100 + spacing * rng.below(80) + step % spacing;
    const Destination to(flow, kAtReceiver);
    trains.place_train(first, spacing, count, 2, to, train_hints[flow], [&](Flight& flight) {
      flight.packet.segment = segment;
      flight.packet.kind = kPushedData;
    });
    for (uint32_t i = 0; i < count; ++i) singles.place(first + i * spacing, to, hints[flow]).packet.segment = segment + 2 * i;
    while (singles.next() <= step * 100) {
      const uint32_t lane = trains.first();
      const Packet& packet = trains.front(lane).packet;
      CHECK_EQ(trains.next(), singles.next());
      CHECK(trains.next() <= trains.next_beside(lane));
      const Flight expected = singles.front(singles.first());
      CHECK_EQ(trains.destination(lane).word(), expected.packet.destination().word());
      CHECK_EQ(packet.segment, expected.packet.segment);
      followers(packet) > 0 ? trains.take(lane, 1, 2, spacing) : trains.drop(lane);
      singles.drop(singles.first());
    }
    if (check::failures) return;
  }
}
