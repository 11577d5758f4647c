// A first-in first-out ring that grows on demand: a 150,000-packet buffer costs memory only when it fills.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace netbuf {

// Indices are absolute (they never restart), so that an element keeps its name while it is inside.
template <class T>
class Ring {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  bool empty() const { return head_ == tail_; }
  bool full() const { return tail_ - head_ == capacity_; }  // one more makes it grow
  uint32_t size() const { return tail_ - head_; }
  uint32_t head() const { return head_; }
  uint32_t tail() const { return tail_; }
  T& operator[](uint32_t index) { return data_[index & (capacity_ - 1)]; }
  const T& operator[](uint32_t index) const { return data_[index & (capacity_ - 1)]; }
  T& front() { return data_[head_ & (capacity_ - 1)]; }
  const T& front() const { return data_[head_ & (capacity_ - 1)]; }
  const T& back() const { return data_[(tail_ - 1) & (capacity_ - 1)]; }
  T& back() { return data_[(tail_ - 1) & (capacity_ - 1)]; }

  void push(const T& value) { place() = value; }
  // Room for one more, to be filled member by member: a value that is put together elsewhere and copied as a whole has
  // to wait for its parts to reach the cache.
  T& place() {
    if (tail_ - head_ == capacity_) [[unlikely]] grow();
    return data_[tail_++ & (capacity_ - 1)];
  }
  void reserve(uint32_t count) {  // room for so many more
    while (capacity_ - (tail_ - head_) < count) grow();
  }
  T& place_reserved() { return data_[tail_++ & (capacity_ - 1)]; }
  // Likewise several, one after the other: fill(element).
  template <class Fill>
  void extend_reserved(uint32_t count, Fill&& fill) {
    T* const data = data_.get();
    const uint32_t mask = capacity_ - 1, tail = tail_ + count;
    for (uint32_t i = tail_; i != tail; ++i) fill(data[i & mask]);
    tail_ = tail;
  }
  void pop() { ++head_; }
  void pop_back() { --tail_; }
  void pop_to(uint32_t index) { head_ = index; }
  void clear() { head_ = tail_ = 0; }
  size_t memory_bytes() const { return size_t{capacity_} * sizeof(T); }

 private:
  [[gnu::cold, gnu::noinline]] void grow() {
    const uint32_t capacity = capacity_ ? 2 * capacity_ : 4;
    std::unique_ptr<T[]> bigger(new T[capacity]);
    for (uint32_t i = head_; i != tail_; ++i) bigger[i & (capacity - 1)] = data_[i & (capacity_ - 1)];
    data_ = std::move(bigger);
    capacity_ = capacity;
  }

  std::unique_ptr<T[]> data_;
  uint32_t capacity_ = 0, head_ = 0, tail_ = 0;
};

}  // namespace netbuf
