// Planning functions of the API library.
//
// How much scratch memory a library call needs is not published, so these calls report themselves as unsupported.
#pragma once

#include <string>

#include "graph/tensor.h"
#include "tiling/matmul_tiling.h"

namespace asim::host {

[[noreturn]] inline void no_scratch_size(const char *function) {
    throw UnsupportedFault(std::string(function) +
                           ": the scratch memory of this library call is not known to the simulator");
}

}  // namespace asim::host

namespace AscendC {

inline void GetSigmoidMaxMinTmpSize(const ge::Shape &, uint32_t, bool, uint32_t &, uint32_t &) {
    asim::host::no_scratch_size("GetSigmoidMaxMinTmpSize");
}
inline void GetTanhMaxMinTmpSize(const ge::Shape &, uint32_t, bool, uint32_t &, uint32_t &) {
    asim::host::no_scratch_size("GetTanhMaxMinTmpSize");
}
inline void GetMeanMaxMinTmpSize(uint32_t, uint32_t, uint32_t, bool, uint32_t &, uint32_t &) {
    asim::host::no_scratch_size("GetMeanMaxMinTmpSize");
}
inline uint32_t GetSoftMaxMaxTmpSize(const ge::Shape &, uint32_t, bool) {
    asim::host::no_scratch_size("GetSoftMaxMaxTmpSize");
}
inline uint32_t GetSoftMaxMinTmpSize(const ge::Shape &, uint32_t, bool) {
    asim::host::no_scratch_size("GetSoftMaxMinTmpSize");
}
inline uint32_t GetSoftMaxGradMinTmpSize(const ge::Shape &, uint32_t, bool, bool) {
    asim::host::no_scratch_size("GetSoftMaxGradMinTmpSize");
}
inline void SoftMaxTilingFunc(const ge::Shape &, uint32_t, uint32_t, optiling::SoftMaxTiling &) {
    asim::host::no_scratch_size("SoftMaxTilingFunc");
}
inline void SoftMaxGradTilingFunc(const ge::Shape &, uint32_t, uint32_t, optiling::SoftMaxTiling &, bool = false) {
    asim::host::no_scratch_size("SoftMaxGradTilingFunc");
}
inline void SoftMaxFlashV2TilingFunc(const ge::Shape &, uint32_t, uint32_t, uint32_t, optiling::SoftMaxTiling &, bool,
                                     bool = false) {
    asim::host::no_scratch_size("SoftMaxFlashV2TilingFunc");
}

}  // namespace AscendC
