// A first-in first-out queue without a bound, in one piece of memory.
#pragma once
#include <cstddef>
#include <vector>

namespace asim {

template <typename T>
class Fifo {
public:
    bool empty() const { return first_ == items_.size(); }
    const T &front() const { return items_[first_]; }
    void push_back(const T &item) { items_.push_back(item); }

    // What has left is dropped once it is half of the memory.
    void pop_front() {
        if (++first_ == items_.size()) return clear();
        if (2 * first_ < items_.size()) return;
        items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
    }

    void clear() {
        items_.clear();
        first_ = 0;
    }

private:
    std::vector<T> items_;
    size_t first_ = 0;
};

}  // namespace asim
