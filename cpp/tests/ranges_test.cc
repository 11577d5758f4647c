#include "netbuf/ranges.h"

#include <set>

#include "check.h"
#include "netbuf/rng.h"

using namespace netbuf;

namespace {

// The same set, one element at a time. Keys are offsets from base, which may lie before the wrap of segment indices.
void compare_with_a_set(uint32_t base, uint64_t seed) {
  RangeSet ranges;
  std::set<uint32_t> model;
  Rng rng(seed);
  constexpr uint32_t kSpan = 200;
  uint32_t floor = 0;
  for (int step = 0; step < 4000; ++step) {
    if (rng.uniform() < 0.9) {
      const uint32_t begin = floor + rng.below(kSpan), end = begin + 1 + rng.below(6);
      std::set<uint32_t> fresh;
      ranges.add(base + begin, base + end, 0, [&](uint32_t b, uint32_t e) {
        CHECK(before(b, e));
        for (uint32_t i = b; i != e; ++i) CHECK(fresh.insert(i - base).second);
      });
      for (uint32_t i = begin; i < end; ++i) CHECK_EQ(model.insert(i).second, fresh.count(i) == 1);
      for (const uint32_t i : fresh) CHECK(begin <= i && i < end);
      const RangeSet::Stretch merged = *ranges.find(base + begin);
      for (uint32_t i = merged.begin - base; i != merged.end - base; ++i) CHECK(model.count(i));
      CHECK(!model.count(merged.begin - base - 1) && !model.count(merged.end - base));
    } else {
      floor += rng.below(40);
      ranges.trim(base + floor);
      model.erase(model.begin(), model.lower_bound(floor));
    }
    size_t total = 0;
    uint32_t previous_end = base - 1;
    for (const RangeSet::Stretch& r : ranges.ranges()) {
      CHECK(before(r.begin, r.end));
      CHECK(after(r.begin, previous_end) || previous_end == base - 1);
      previous_end = r.end;
      total += r.end - r.begin;
    }
    CHECK_EQ(total, model.size());
    CHECK_EQ(ranges.empty(), model.empty());
    const uint32_t probe = floor + rng.below(kSpan);
    const RangeSet::Stretch* found = ranges.find(base + probe);
    CHECK_EQ(found != nullptr, model.count(probe) == 1);
    if (found) CHECK(!before(base + probe, found->begin) && before(base + probe, found->end));
  }
}

}  // namespace

TEST(range_set_equals_a_set_of_indices) {
  for (uint64_t seed = 1; seed <= 5; ++seed) compare_with_a_set(1000, seed);
}

TEST(range_set_works_across_the_wrap_of_indices) { compare_with_a_set(UINT32_MAX - 2000, 7); }

TEST(touching_ranges_become_one) {
  RangeSet ranges;
  ranges.add(10, 12);
  ranges.add(14, 16);
  ranges.add(12, 14);
  CHECK_EQ(ranges.ranges().size(), 1u);
  CHECK_EQ(ranges.ranges()[0].begin, 10u);
  CHECK_EQ(ranges.ranges()[0].end, 16u);
}
