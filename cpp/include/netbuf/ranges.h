// A sorted set of disjoint segment ranges: what arrived out of order, or was selectively acknowledged.
#pragma once
#include <algorithm>
#include <vector>

#include "netbuf/packet.h"

namespace netbuf {

class RangeSet {
 public:
  bool empty() const { return ranges_.empty(); }
  void clear() { ranges_.clear(); }
  const std::vector<Range>& ranges() const { return ranges_; }
  size_t memory_bytes() const { return ranges_.capacity() * sizeof(Range); }

  // Adds [begin, end); calls fresh(b, e) for each part that was not inside before. Returns the merged range.
  template <class Fresh>
  Range add(uint32_t begin, uint32_t end, Fresh&& fresh) {
    if (ranges_.empty() || after(begin, ranges_.back().end)) {  // most come at the end
      fresh(begin, end);
      ranges_.push_back({begin, end});
      return ranges_.back();
    }
    if (Range& last = ranges_.back(); !before(begin, last.begin)) {
      if (after(end, last.end)) {
        fresh(last.end, end);
        last.end = end;
      }
      return last;
    }
    auto first = std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                                  [](const Range& r, uint32_t b) { return before(r.end, b); });
    Range merged{begin, end};
    uint32_t covered = begin;
    auto last = first;
    for (; last != ranges_.end() && !after(last->begin, end); ++last) {
      if (before(covered, last->begin)) fresh(covered, last->begin);
      if (before(covered, last->end)) covered = last->end;
      if (before(last->begin, merged.begin)) merged.begin = last->begin;
      if (after(last->end, merged.end)) merged.end = last->end;
    }
    if (before(covered, end)) fresh(covered, end);
    if (first == last) {
      ranges_.insert(first, merged);
    } else {
      *first = merged;
      ranges_.erase(first + 1, last);
    }
    return merged;
  }
  void add(uint32_t begin, uint32_t end) {
    add(begin, end, [](uint32_t, uint32_t) {});
  }

  // Forgets everything below index.
  void trim(uint32_t index) {
    auto keep = ranges_.begin();
    while (keep != ranges_.end() && !after(keep->end, index)) ++keep;
    ranges_.erase(ranges_.begin(), keep);
    if (!ranges_.empty() && before(ranges_.front().begin, index)) ranges_.front().begin = index;
  }

  // The range that contains index, or null.
  const Range* find(uint32_t index) const {
    if (ranges_.empty() || !before(index, ranges_.back().end)) return nullptr;
    auto at = std::upper_bound(ranges_.begin(), ranges_.end(), index,
                               [](uint32_t i, const Range& r) { return before(i, r.end); });
    return at != ranges_.end() && !before(index, at->begin) ? &*at : nullptr;
  }

 private:
  std::vector<Range> ranges_;
};

}  // namespace netbuf
