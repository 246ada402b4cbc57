// Sorting of (score, index) records in descending order. A record has 8 bytes: the score first, the index in the last four.
#pragma once
#include "asim/semantics/vector.h"

namespace asim {

constexpr uint32_t kSortRecordBytes = 8;
constexpr uint32_t kSortedTogether = 32;    // records that one repeat of Sort32 sorts
constexpr uint32_t kMergeQueues = 4;

// Each repeat sorts 32 scores with their indices; equal scores keep their order. Scores, indices and records begin where a repeat
// of theirs would (page of Sort32, constraints).
template <typename T>
ASIM_API void sort32(uint8_t *dst, const uint8_t *scores, const uint8_t *indices, uint32_t repeats);

// The same inside library calls, whose pages ask for data blocks and no more.
template <typename T>
ASIM_API void sort_repeats(uint8_t *dst, const uint8_t *scores, const uint8_t *indices, uint32_t repeats);

struct MergeQueues {
    uint8_t *base[kMergeQueues] = {};
    uint16_t length[kMergeQueues] = {};     // records
    uint32_t valid = 0b1111;                // a bit for each queue that takes part
    Flag stop_when_one_is_empty = false;
};

// Merges sorted queues into one; `merged`, or where it is null a register, tells how many records were taken from each. Earlier
// queues win ties. Each further repeat takes the four queues that follow in memory.
template <typename T>
ASIM_API void merge_sort(uint8_t *dst, MergeQueues queues, uint32_t *merged, uint32_t repeats);

// Sorts repeats of 32 scores, and merges all of them into one run if so asked; `other` has room for as many records as dst.
template <typename T>
ASIM_API void sort_all(uint8_t *dst, const uint8_t *scores, const uint8_t *indices, uint8_t *other, uint32_t repeats, bool whole);

}  // namespace asim
