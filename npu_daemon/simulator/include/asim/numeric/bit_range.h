// Ranges of bits, in words of 64.
#pragma once
#include <algorithm>
#include <cstdint>

namespace asim {

constexpr uint64_t kWordBits = 64;

// Sets the bits [begin, end), which are not none; returns whether some of them were not set.
inline bool set_bits(uint64_t *words, uint64_t begin, uint64_t end) {
    bool fresh = false;
    const auto set = [&](uint64_t word, uint64_t mask) {
        fresh |= (words[word] & mask) != mask;
        words[word] |= mask;
    };
    const uint64_t first = begin / kWordBits, last = (end - 1) / kWordBits;
    const uint64_t head = ~0ull << begin % kWordBits, tail = ~0ull >> (kWordBits - 1 - (end - 1) % kWordBits);
    if (first == last) {
        set(first, head & tail);
        return fresh;
    }
    set(first, head);
    set(last, tail);
    uint64_t common = ~0ull;
    for (uint64_t word = first + 1; word < last; ++word) common &= words[word];
    std::fill(words + first + 1, words + last, ~0ull);
    return fresh || common != ~0ull;
}

// How many of the bits [begin, end) are set from the first on.
inline uint64_t leading_ones(const uint64_t *words, uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end;) {
        const uint64_t clear = ~words[at / kWordBits] >> at % kWordBits;
        if (clear != 0) return std::min<uint64_t>(at + __builtin_ctzll(clear), end) - begin;
        at = (at / kWordBits + 1) * kWordBits;
    }
    return end - begin;
}

// Likewise from the last on.
inline uint64_t trailing_ones(const uint64_t *words, uint64_t begin, uint64_t end) {
    for (uint64_t at = end; at > begin;) {
        const uint64_t clear = ~words[(at - 1) / kWordBits] << (kWordBits - 1 - (at - 1) % kWordBits);
        if (clear != 0) return end - std::max<uint64_t>(at - std::min<uint64_t>(__builtin_clzll(clear), at), begin);
        at = (at - 1) / kWordBits * kWordBits;
    }
    return end - begin;
}

}  // namespace asim
