// Pools: every part of a job, interruption, faults, forks; and worlds in slices.
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "check.h"
#include "netbuf/batch.h"
#include "worlds.h"

using namespace netbuf;
using worlds::dumbbell;

TEST(pool_runs_every_part_once) {
  Pool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> parts[4] = {};
    pool.run([&](uint32_t part, EventBudget&) { ++parts[part]; }, {});
    for (const auto& count : parts) CHECK_EQ(count.load(), 1);
  }
}

TEST(pool_gives_up_all_parts_when_the_caller_wants_to_stop) {
  Pool pool(3);
  std::atomic<int> stopped = 0;
  bool thrown = false;
  const auto endless = [&](uint32_t, EventBudget& budget) {
    try {
      for (;;) budget.renew();
    } catch (const Abort&) {
      ++stopped;
      throw;
    }
  };
  try {
    pool.run(endless, [] { throw Abort{std::make_exception_ptr(std::runtime_error("enough"))}; });
  } catch (const Abort& abort) {
    thrown = abort.why != nullptr;
  }
  CHECK(thrown);
  CHECK_EQ(stopped.load(), 3);
  int parts = 0;
  pool.run([&](uint32_t part, EventBudget&) { parts += part == 0; }, {});  // and goes on
  CHECK_EQ(parts, 1);
}

TEST(pool_tells_of_faults_in_any_part) {
  Pool pool(3);
  for (uint32_t bad = 0; bad < 3; ++bad) {
    bool thrown = false;
    try {
      pool.run([&](uint32_t part, EventBudget&) { if (part == bad) throw std::runtime_error("bad"); }, {});
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    CHECK(thrown);
  }
}

TEST(a_child_has_lost_the_pool_and_its_batch_makes_another) {
  Batch batch(4, 1, 3, make_agent("sender"));
  WorldConfig config = dumbbell(10, 48, 100, {"agent"});
  for (uint32_t i = 0; i < 4; ++i) batch.reset(i, config, i + 1);
  batch.advance(kSecond, nullptr);
  Pool pool(2);
  // All threads have started: AddressSanitizer's allocator, unlike glibc's, forks with its locks held.
  pool.run([](uint32_t, EventBudget&) {}, {});
  CHECK(!pool.lost());
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const bool lost = pool.lost();
    batch.advance(kSecond, nullptr);
    _exit(lost && batch.world(3).now() == 2 * kSecond ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  batch.advance(kSecond, nullptr);
  CHECK_EQ(batch.world(3).now(), 2 * kSecond);
}

TEST(slices_of_events_change_nothing) {
  const WorldConfig config = dumbbell(10, 48, 30, {"cubic", "newreno"});
  World whole(config, 1), sliced(config, 1);
  whole.run(5 * kSecond);
  int slices = 0;
  for (uint32_t left = 3; !sliced.run(5 * kSecond, left); left = 3) ++slices;
  CHECK(slices > 500);
  CHECK_EQ(sliced.now(), whole.now());
  for (size_t i = 0; i < 2; ++i) {
    CHECK_EQ(sliced.flows()[i].counters().packets_sent, whole.flows()[i].counters().packets_sent);
  }
}
