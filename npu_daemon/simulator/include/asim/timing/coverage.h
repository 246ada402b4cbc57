// Which bytes of the tensors the trace says were read and written.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "asim/trace/site.h"

namespace asim {

struct TensorRange {
    std::string name;
    uint64_t address = 0;
    uint64_t bytes = 0;
    bool output = false;
};

struct TensorCoverage {
    uint64_t missing_bytes = 0;  // touched by none: not computed, or not taken into account, by this kernel
    uint64_t first_missing = 0;  // offset of the first of them
    uint64_t beyond_bytes = 0;   // how far behind its end copies reach, if further than aclrtMalloc promises
};

// Which bytes of a tensor are touched: as stretches while they are few, else one bit a byte.
class TouchedBytes {
public:
    explicit TouchedBytes(const TensorRange &range);

    // A copy of a core: what it touches behind the end counts too.
    void mark_copy(uint32_t core, uint64_t address, uint64_t bytes);
    void mark(uint32_t core, uint64_t address, uint64_t bytes);

    bool output() const { return output_; }

    // Whether so many bytes from an address on may touch any of it, or what lies behind its end.
    bool near(uint64_t address, uint64_t bytes) const {
        return address < begin_ ? begin_ - address < bytes : address < end_ + kMostSlackBytes;
    }
    TensorCoverage coverage();

private:
    static constexpr uint64_t kMostSlackBytes = 544;    // of an allocation (runtime/gm.cpp)

    struct Stretch {
        uint64_t begin = 0;
        uint64_t end = 0;
    };

    void put_away(Stretch &last);
    void set_bits_of(const Stretch &stretch);
    void merge();
    void use_bits();
    uint64_t first_missing() const;     // of stretches that are merged, or of bits

    std::vector<Stretch> last_;     // of each core, what it touched last, from end to end
    std::vector<Stretch> stretches_;    // of which none is empty
    uint64_t begin_;
    uint64_t end_;
    bool output_;
    uint64_t beyond_bytes_ = 0;
    std::vector<uint64_t> bits_;    // empty while there are stretches
};

// What instructions did with each tensor: writes count for outputs, reads for inputs.
class Coverage {
public:
    explicit Coverage(const std::vector<TensorRange> &tensors) : tensors_(tensors.begin(), tensors.end()) {}

    void mark(uint32_t core, const Entry &entry);      // a copy of global memory or an access of the scalar unit

    std::vector<TensorCoverage> of_tensors();     // in their order

private:
    std::vector<TouchedBytes> tensors_;
};

}  // namespace asim
