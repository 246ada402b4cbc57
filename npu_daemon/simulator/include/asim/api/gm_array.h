// Static arrays in global memory (`static __gm__ T name[n]`): one for all blocks, loaded with the kernel.
#pragma once
#include <cstddef>
#include <cstdint>

namespace asim {

// An array whose accesses are all counted.
template <typename T, size_t count>
struct GmArray {
    T asim_values[count];
    operator T *() { return asim_values; }
    template <typename Other>
    explicit operator Other *() {
        return (Other *)static_cast<T *>(*this);
    }
};

}  // namespace asim

// What the declarations are rewritten to. Aligned to pages, so that they share none with what is read-only.
#define __gm_array__(type, name, ...) \
    asim::GmArray<type, (__VA_ARGS__)> name __attribute__((section("asim_gm_static"), aligned(4096)))
