// Which part of a copy the shared L2 cache serves: least recently used lines, dirty lines written back on eviction.
#pragma once
#include <cstdint>
#include <vector>

#include "asim/timing/table.h"

namespace asim {

struct CacheTraffic {
    double hit_bytes = 0;
    double miss_bytes = 0;
    double written_back_bytes = 0;

    CacheTraffic &operator+=(const CacheTraffic &other) {
        hit_bytes += other.hit_bytes;
        miss_bytes += other.miss_bytes;
        written_back_bytes += other.written_back_bytes;
        return *this;
    }
};

// What a burst does with the lines it touches.
enum class CacheUse : uint8_t { Read, Write, Bypass };  // Bypass: what is not in the cache stays out of it

// A line that the cache holds: which one, which of its sectors, and whether it is still to be written back.
struct CachedLine {
    uint64_t tag = 0;
    uint32_t sectors = 0;
    uint32_t dirty = 0;
};

class L2Cache {
public:
    L2Cache(uint64_t capacity_bytes, uint64_t line_bytes, uint64_t dirty_bytes);  // a line is a power of two

    // What it holds, the least recently used line first; and an empty cache that takes it over.
    std::vector<CachedLine> contents() const;
    void fill(const std::vector<CachedLine> &lines);

    // Counts the bytes requested for [address, address + bytes) into `traffic`. Memory is asked for whole lines; only a
    // burst shorter than a line makes do with the quarter or half of a line it lies in. A request hits or misses as one.
    void access(uint64_t address, uint64_t bytes, CacheUse use, CacheTraffic &traffic);

    uint64_t line_bytes() const { return line_bytes_; }
    uint64_t line_of(uint64_t address) const { return address >> line_bits_; }

private:
    struct Line {
        uint32_t newer = 0;
        uint32_t older = 0;
        uint8_t valid = 0;      // one bit a sector: a miss loads only the sectors it touches
        bool dirty = false;
    };
    static constexpr uint64_t kFewLines = 1 << 16;  // of a small kernel
    static constexpr uint32_t kSectorBits = 2;
    static constexpr uint64_t kSectors = 1u << kSectorBits;
    static constexpr uint8_t kAllSectors = (1u << kSectors) - 1;
    uint8_t sectors(uint64_t from, uint64_t to) const;
    uint64_t requested(uint64_t from, uint64_t to, uint64_t burst_bytes) const;
    uint8_t touch(uint64_t tag, uint8_t touched, CacheUse use, CacheTraffic &traffic);
    uint32_t take_line(uint64_t tag, CacheTraffic &traffic);
    void unlink(uint32_t index);
    void push_newest(uint32_t index);

    uint64_t line_bytes_;
    uint32_t line_bits_;
    uint64_t capacity_lines_;
    uint64_t count_ = 0;
    uint64_t dirty_of_others_;      // lines that other kernels left, the first to be replaced
    Table<Line> lines_;         // by tag; entry 0 is the list head: newer = oldest line, older = newest
};

}  // namespace asim
