// A first-in first-out queue whose places are used again and again and keep what they hold. The first `kOwn` of them, none or
// a power of two, lie in the queue itself.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

namespace asim {

template <typename T, uint32_t kOwn = 0>
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
    static constexpr uint32_t kFewest = 4;

    T *places() { return const_cast<T *>(std::as_const(*this).places()); }
    const T *places() const {
        if constexpr (kOwn > 0) {
            if (capacity_ == kOwn) return own_.data();
        }
        return places_.get();
    }
    uint32_t place(uint32_t index) const { return (first_ + index) & (capacity_ - 1); }

    [[gnu::cold, gnu::noinline]] void grow() {
        const uint32_t capacity = std::max(2 * capacity_, kFewest);
        auto places = std::make_unique<T[]>(capacity);
        for (uint32_t i = 0; i < size_; ++i) places[i] = std::move((*this)[i]);
        places_ = std::move(places);
        first_ = 0;
        capacity_ = capacity;
    }

    uint32_t first_ = 0;
    uint32_t size_ = 0;
    uint32_t capacity_ = kOwn;  // a power of two, or 0
    std::unique_ptr<T[]> places_;
    std::array<T, kOwn> own_{};
};

}  // namespace asim
