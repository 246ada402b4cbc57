// Reruns of one kernel, which must agree with its first run: they differ in where global memory lies and in what memories hold before they
// are written. Addresses in the trace are canonical, so that no price depends on which run it is.
#pragma once
#include <cstdint>

namespace asim {

struct Rerun {
    uint64_t shift_bytes = 0;   // added to every address of global memory
    uint8_t poison = 0xff;      // a NaN in every floating-point type
};

const Rerun &rerun();

// Chooses which rerun this process is; 0 when it is never called. Before anything is allocated.
void begin_rerun(uint32_t number);

}  // namespace asim
