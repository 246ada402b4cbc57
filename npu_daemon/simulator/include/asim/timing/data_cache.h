// The data cache of a scalar unit: which lines of global memory it holds.
#pragma once
#include <array>
#include <cstdint>

namespace asim {

// Of 32 KiB in lines of 64 bytes (docs/hardware.md section 1). How lines share places is not published: here each has one,
// those of 32 KiB all different ones, and tensors a power of two apart do not meet.
class DataCache {
public:
    enum class Found : uint8_t {
        Line,       // the line itself
        LineBefore, // a stream: the line before it, and not the line
        Nothing,
    };

    // Looks for the line that holds `address`, and loads it.
    Found load(uint64_t address) {
        const uint64_t line = address / kLineBytes;
        if (holds(line)) return Found::Line;
        const bool follows = line > 0 && holds(line - 1);
        place(line) = line;
        return follows ? Found::LineBefore : Found::Nothing;
    }

    void drop(uint64_t address) {
        const uint64_t line = address / kLineBytes;
        if (holds(line)) place(line) = kNone;
    }

    void clear() { lines_.fill(kNone); }

private:
    static constexpr uint64_t kLineBytes = 64, kLines = 512, kNone = ~0ull;

    uint64_t &place(uint64_t line) {
        constexpr uint64_t kScatter = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
        return lines_[(line + (line / kLines * kScatter >> 32)) % kLines];
    }
    bool holds(uint64_t line) { return place(line) == line; }

    std::array<uint64_t, kLines> lines_;
};

}  // namespace asim
