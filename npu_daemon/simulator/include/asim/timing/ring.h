// A first-in first-out queue whose places are used again and again and keep what they hold; the first few lie in it.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

namespace asim {

template <typename T>
class Ring {
public:
    bool empty() const { return size_ == 0; }
    uint32_t size() const { return size_; }
    T &front() { return places()[first_]; }
    const T &front() const { return places()[first_]; }
    T &operator[](uint32_t index) { return places()[place(index)]; }
    const T &operator[](uint32_t index) const { return places()[place(index)]; }

    // Adds a place at the end and returns it as it was left.
    T &push() {
        if (size_ == capacity_) grow();
        return places()[place(size_++)];
    }
    void push(const T &item) { push() = item; }

    void pop(uint32_t count = 1) {
        first_ = place(count);
        size_ -= count;
    }

    void clear() { size_ = 0; }

private:
    static constexpr uint32_t kFirstPlaces = 4;

    T *places() { return more_ ? more_.get() : here_.data(); }
    const T *places() const { return more_ ? more_.get() : here_.data(); }
    uint32_t place(uint32_t index) const { return (first_ + index) & (capacity_ - 1); }

    void grow() {
        auto more = std::make_unique<T[]>(2 * capacity_);
        for (uint32_t i = 0; i < size_; ++i) more[i] = std::move(places()[place(i)]);
        more_ = std::move(more);
        first_ = 0;
        capacity_ *= 2;
    }

    uint32_t first_ = 0;
    uint32_t size_ = 0;
    uint32_t capacity_ = kFirstPlaces;      // a power of two
    std::unique_ptr<T[]> more_;             // in place of these, once they were too few
    std::array<T, kFirstPlaces> here_{};
};

}  // namespace asim
