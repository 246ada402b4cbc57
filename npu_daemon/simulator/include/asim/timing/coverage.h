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
    TensorCoverage coverage();

private:
    struct Stretch {
        uint64_t begin = 0;
        uint64_t end = 0;
    };

    void put_away(Stretch &last);
    void set_bits_of(const Stretch &stretch);
    void merge();
    void use_bits();

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

    void mark(uint32_t core, const Entry &entry) {
        const Op op = entry.record.op;
        if (op == Op::ScalarAccess || reads_gm(op) || writes_gm(op)) mark_access(core, entry);
    }

    std::vector<TensorCoverage> of_tensors();     // in their order

private:
    void mark_access(uint32_t core, const Entry &entry);

    std::vector<TouchedBytes> tensors_;
};

}  // namespace asim
