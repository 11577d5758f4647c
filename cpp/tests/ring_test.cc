#include "netbuf/ring.h"

#include <deque>

#include "check.h"
#include "netbuf/rng.h"

using namespace netbuf;

TEST(ring_is_a_queue_that_grows) {
  Ring<uint64_t> ring;
  std::deque<uint64_t> model;
  Rng rng(1);
  CHECK_EQ(ring.memory_bytes(), 0u);
  for (uint64_t i = 0; i < 200'000; ++i) {
    const bool filling = (i / 10'000) % 2 == 0;
    if (model.empty() || rng.uniform() < (filling ? 0.7 : 0.3)) {
      ring.push(i);
      model.push_back(i);
    } else {
      CHECK_EQ(ring.front(), model.front());
      ring.pop();
      model.pop_front();
    }
    CHECK_EQ(ring.size(), model.size());
    CHECK_EQ(ring.empty(), model.empty());
    if (!model.empty()) {
      CHECK_EQ(ring.back(), model.back());
      const uint32_t k = rng.below(static_cast<uint32_t>(model.size()));
      CHECK_EQ(ring[ring.head() + k], model[k]);
    }
  }
}

TEST(ring_elements_keep_their_index_when_it_grows) {
  Ring<uint32_t> ring;
  for (uint32_t i = 0; i < 11; ++i) ring.push(i);
  ring.pop_to(7);
  for (uint32_t i = 11; i < 5000; ++i) ring.push(i);
  CHECK_EQ(ring.head(), 7u);
  CHECK_EQ(ring.tail(), 5000u);
  for (uint32_t i = 7; i < 5000; ++i) CHECK_EQ(ring[i], i);
}

TEST(ring_memory_follows_its_content) {
  Ring<uint64_t> ring;
  for (int i = 0; i < 1'000'000; ++i) {
    ring.push(1);
    ring.pop();
  }
  CHECK_LE(ring.memory_bytes(), 16 * sizeof(uint64_t));
}

TEST(ring_extends_by_several_across_its_end) {
  Ring<uint32_t> ring;
  for (uint32_t i = 0; i < 13; ++i) ring.push(i);
  ring.pop_to(10);
  ring.reserve(9);
  uint32_t next = 13;
  ring.extend_reserved(9, [&](uint32_t& element) { element = next++; });
  CHECK_EQ(ring.tail(), 22u);
  for (uint32_t i = 10; i < 22; ++i) CHECK_EQ(ring[i], i);
  CHECK_EQ(ring.memory_bytes(), 16 * sizeof(uint32_t));
}
