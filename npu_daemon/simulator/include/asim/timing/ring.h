// A first-in first-out queue of bounded length whose places are used again, with whatever memory they hold.
#pragma once
#include <cstddef>
#include <vector>

namespace asim {

template <typename T>
class Ring {
public:
    bool empty() const { return size_ == 0; }
    size_t size() const { return size_; }
    T &front() { return places_[first_]; }
    const T &operator[](size_t index) const { return places_[place(index)]; }

    // Adds a place at the end and returns it as it was left; at most `capacity` places may be in use.
    T &push(size_t capacity) {
        if (places_.size() < capacity) places_.resize(capacity);
        return places_[place(size_++)];
    }

    void pop() {
        --size_;
        first_ = size_ == 0 ? 0 : place(1);
    }

    void clear() { size_ = 0; }

private:
    size_t place(size_t index) const {
        const size_t sum = first_ + index;
        return sum < places_.size() ? sum : sum - places_.size();
    }

    std::vector<T> places_;
    size_t first_ = 0;
    size_t size_ = 0;
};

}  // namespace asim
