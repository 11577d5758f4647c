// A sorted set of disjoint segment ranges: what arrived out of order, or was selectively acknowledged.
#pragma once
#include <algorithm>
#include <vector>

#include "netbuf/packet.h"

namespace netbuf {

class RangeSet {
 public:
  struct Stretch {
    uint32_t begin, end;         // segments [begin, end)
    int64_t bytes;               // of what is inside, where that is counted
  };

  bool empty() const { return ranges_.empty(); }
  void clear() { ranges_.clear(); }
  const std::vector<Stretch>& ranges() const { return ranges_; }
  size_t memory_bytes() const { return ranges_.capacity() * sizeof(Stretch); }

  // Adds [begin, end); calls fresh(b, e) for each part that was not inside before. bytes: of these parts.
  template <class Fresh>
  void add(uint32_t begin, uint32_t end, int64_t bytes, Fresh&& fresh) {
    if (ranges_.empty() || after(begin, ranges_.back().end)) {  // most come at the end
      fresh(begin, end);
      ranges_.push_back({begin, end, bytes});
      return;
    }
    if (Stretch& last = ranges_.back(); !before(begin, last.begin)) {
      if (after(end, last.end)) {
        fresh(last.end, end);
        last.end = end;
        last.bytes += bytes;
      }
      return;
    }
    auto first = std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                                  [](const Stretch& r, uint32_t b) { return before(r.end, b); });
    Stretch merged{begin, end, bytes};
    uint32_t covered = begin;
    auto last = first;
    for (; last != ranges_.end() && !after(last->begin, end); ++last) {
      if (before(covered, last->begin)) fresh(covered, last->begin);
      if (before(covered, last->end)) covered = last->end;
      if (before(last->begin, merged.begin)) merged.begin = last->begin;
      if (after(last->end, merged.end)) merged.end = last->end;
      merged.bytes += last->bytes;
    }
    if (before(covered, end)) fresh(covered, end);
    if (first == last) {
      ranges_.insert(first, merged);
    } else {
      *first = merged;
      ranges_.erase(first + 1, last);
    }
  }
  void add(uint32_t begin, uint32_t end, int64_t bytes = 0) {
    add(begin, end, bytes, [](uint32_t, uint32_t) {});
  }

  // Forgets everything below index, where a range begins or ends if bytes count.
  void trim(uint32_t index) {
    auto keep = ranges_.begin();
    while (keep != ranges_.end() && !after(keep->end, index)) ++keep;
    ranges_.erase(ranges_.begin(), keep);
    if (!ranges_.empty() && before(ranges_.front().begin, index)) ranges_.front().begin = index;
  }

  // The range that contains index, or null.
  const Stretch* find(uint32_t index) const {
    if (ranges_.empty() || !before(index, ranges_.back().end)) return nullptr;
    auto at = std::upper_bound(ranges_.begin(), ranges_.end(), index,
                               [](uint32_t i, const Stretch& r) { return before(i, r.end); });
    return at != ranges_.end() && !before(index, at->begin) ? &*at : nullptr;
  }

 private:
  std::vector<Stretch> ranges_;
};

}  // namespace netbuf
