// Round trips as a receiver knows them, from the ACKs that time stamps echo.
#include "netbuf/echoes.h"

#include <array>
#include <cmath>

#include "check.h"

using namespace netbuf;

namespace {

// An ACK leaves, and reaches the sender, which answers at once; the answer comes back.
void go_round(EchoedRoundTrips& trips, uint32_t ack, Time leaves, Time back, Time there) {
  trips.left(ack, leaves);
  trips.arrived(ack, leaves + back);
  if (trips.echoes(leaves + back)) trips.sample(leaves + back, leaves + back + there, kMillisecond);
}

}  // namespace

TEST(less_is_believed_at_once_more_by_an_eighth) {
  EchoedRoundTrips trips;
  CHECK_EQ(trips.average(), kNever);
  go_round(trips, 0, 0, 30 * kMillisecond, 30 * kMillisecond);
  CHECK_EQ(trips.average(), 60 * kMillisecond);
  go_round(trips, 1, 100 * kMillisecond, 110 * kMillisecond, 30 * kMillisecond);
  CHECK_EQ(trips.average(), 70 * kMillisecond);  // 60 + 80 / 8
  go_round(trips, 2, 300 * kMillisecond, 10 * kMillisecond, 30 * kMillisecond);
  CHECK_EQ(trips.average(), 40 * kMillisecond);
}

TEST(a_sample_stands_for_the_acks_since_the_last) {
  EchoedRoundTrips trips;
  for (uint32_t n = 0; n < 2; ++n) go_round(trips, n, n * 10 * kMillisecond, 160 * kMillisecond, 160 * kMillisecond);
  for (uint32_t n = 2; n <= 6; ++n) trips.left(n, (9 + n) * kMillisecond);  // a 64th is 5 ms: the last is looked at
  trips.arrived(6, 400 * kMillisecond);
  trips.sample(400 * kMillisecond, 655 * kMillisecond, kMillisecond);
  CHECK_NEAR(static_cast<double>(trips.average()), (640 - std::pow(0.875, 5) * 320) * 1e6, 2);
}

TEST(of_acks_that_were_lost_or_say_nothing_new_there_is_no_sample) {
  EchoedRoundTrips trips;
  go_round(trips, 0, 0, kMillisecond, kMillisecond);
  trips.left(1, 10 * kMillisecond);    // lost
  trips.left(2, 20 * kMillisecond);
  CHECK(!trips.echoes(50 * kMillisecond));
  trips.arrived(2, 60 * kMillisecond);
  CHECK(!trips.echoes(59 * kMillisecond) && trips.echoes(60 * kMillisecond));
  trips.sample(60 * kMillisecond, 70 * kMillisecond, kMillisecond);
  trips.left(2, 80 * kMillisecond);    // a duplicate
  trips.arrived(2, 90 * kMillisecond);
  CHECK(!trips.echoes(kSecond));
  CHECK_GE(trips.memory_bytes(), 16u);
}

// Those of a hole acknowledge nothing new, but one after the other reaches the sender.
TEST(acks_with_blocks_are_told_apart) {
  EchoedRoundTrips trips;
  go_round(trips, 5, 0, 10 * kMillisecond, 10 * kMillisecond);
  const Time least = trips.average();
  CHECK_EQ(least, 20 * kMillisecond);
  for (uint16_t blocks = 65'534, n = 0; n < 4; ++blocks, ++n) {  // numbers wrap
    trips.left_with_blocks(5, blocks, (100 + 10 * n) * kMillisecond);
  }
  trips.arrived(5, 105 * kMillisecond);                    // not they: a plain one, late
  CHECK(!trips.echoes(106 * kMillisecond));
  trips.arrived_with_blocks(5, 65'535, 120 * kMillisecond);  // the one before was lost
  CHECK(trips.echoes(120 * kMillisecond));
  trips.sample(120 * kMillisecond, 190 * kMillisecond, kMillisecond);
  CHECK_NEAR(static_cast<double>(trips.average()), 80e6 - 60e6 * 0.875 * 0.875, 2);  // for two
  CHECK(!trips.echoes(kSecond));
  trips.arrived(6, 300 * kMillisecond);                    // says all that the others do
  CHECK(trips.echoes(300 * kMillisecond) && !trips.echoes(299 * kMillisecond));
}

TEST(time_stamps_are_whole_units) {
  for (const auto [leaves, comes, told] : {std::array<Time, 3>{1'900, 65'100, 64}, {1'100, 65'900, 64}, {900, 65'100, 65}}) {
    EchoedRoundTrips trips;
    trips.left(1, leaves * kMicrosecond);
    trips.arrived(1, 30 * kMillisecond);
    trips.sample(30 * kMillisecond, comes * kMicrosecond, kMillisecond);
    CHECK_EQ(trips.average(), told * kMillisecond);
  }
}

TEST(without_time_stamps_the_quickest_window_is_a_round_trip) {
  EchoedRoundTrips trips;
  const auto come = [&](uint32_t from, uint32_t upto, Time begin, Time each) {
    for (uint32_t n = from; n <= upto; ++n) trips.in_order(n * 100, 950, begin + (n - from) * each);
    return trips.average();
  };
  CHECK_EQ(come(1, 10, kSecond, kMillisecond), kNever);  // 950 bytes are over with the tenth after it
  CHECK_EQ(come(11, 20, kSecond + 10 * kMillisecond, kMillisecond), 10 * kMillisecond);
  CHECK_EQ(come(21, 31, 2 * kSecond, 2 * kMillisecond), 10 * kMillisecond);
  CHECK_EQ(come(32, 51, 3 * kSecond, kMillisecond / 2), 5 * kMillisecond);
}

TEST(nothing_shorter_than_a_time_stamps_unit_can_be_measured) {
  EchoedRoundTrips trips;
  go_round(trips, 0, 0, kMicrosecond, kMicrosecond);
  CHECK_EQ(trips.average(), kMillisecond);
}

// The first answer has arrived, its copy is lost, and then so is the first segment.
TEST(a_copy_of_the_answer_that_is_lost_holds_up_no_acks_with_blocks) {
  EchoedRoundTrips trips;
  trips.answered(0);
  trips.answer_arrived(0, 30 * kMillisecond);
  trips.answered(kSecond);
  trips.sample(30 * kMillisecond, 60 * kMillisecond, kMillisecond);
  trips.left_with_blocks(0, 7, 1100 * kMillisecond);
  trips.arrived(0, 1120 * kMillisecond);
  CHECK(!trips.echoes(1120 * kMillisecond));
  trips.arrived_with_blocks(0, 7, 1120 * kMillisecond);
  CHECK(trips.echoes(1120 * kMillisecond));
  trips.sample(1120 * kMillisecond, 1150 * kMillisecond, kMillisecond);
  CHECK_EQ(trips.average(), 50 * kMillisecond);
}

// As tcp_rcv_rtt_update has it: one sample a time stamp, of the first ACK that has it.
TEST(where_acks_queue_each_time_stamp_is_a_sample) {
  EchoedRoundTrips trips;
  trips.look_at_each(kMillisecond);
  double expected = 100;
  const auto left_at = [](uint32_t n) { return kSecond + n * 400 * kMicrosecond; };  // two or three a millisecond
  for (uint32_t n = 0; n < 200; ++n) trips.left(n, left_at(n));
  Time last = -1;
  for (uint32_t n = 0; n < 200; ++n) {
    const Time arrived = left_at(n) + 70 * kMillisecond + n * 200 * kMicrosecond;
    trips.arrived(n, arrived);
    const Time stamp = left_at(n) / kMillisecond, now = arrived + 30 * kMillisecond;
    CHECK_EQ(trips.echoes(arrived), stamp != last);
    if (!trips.echoes(arrived)) continue;
    trips.sample(arrived, now, kMillisecond);
    const auto sample = static_cast<double>(now / kMillisecond - stamp);
    expected = sample <= expected || last < 0 ? sample : expected + (sample - expected) / 8;
    CHECK_NEAR(static_cast<double>(trips.average()) * 1e-6, expected, 1e-4);
    last = stamp;
  }
}

TEST(an_answer_that_comes_again_is_measured_by_itself) {
  EchoedRoundTrips trips;
  CHECK_EQ(trips.answered(0), 0u);       // lost
  CHECK_EQ(trips.answered(kSecond), 1u);
  trips.answer_arrived(1, 1030 * kMillisecond);
  CHECK(trips.echoes(1030 * kMillisecond));
  trips.sample(1030 * kMillisecond, 1060 * kMillisecond, kMillisecond);
  CHECK_EQ(trips.average(), 60 * kMillisecond);
}
