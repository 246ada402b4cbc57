// Figures of the chip, by the context of a tiling or tiling parse function.
#pragma once
#include "log/log.h"
#include "tiling/platform/platform_ascendc.h"

namespace Ops {
namespace Base {

template <class Context>
platform_ascendc::PlatformAscendC asim_chip_of(const Context *context) {
    return platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
}
template <class Context>
uint32_t GetAivCoreNum(const Context *context) {
    return asim_chip_of(context).GetCoreNumAiv();
}
template <class Context>
uint32_t GetAicCoreNum(const Context *context) {
    return asim_chip_of(context).GetCoreNumAic();
}
template <class Context>
uint32_t GetUbSize(const Context *context) {
    uint64_t bytes = 0;
    asim_chip_of(context).GetCoreMemSize(platform_ascendc::CoreMemType::UB, bytes);
    return static_cast<uint32_t>(bytes);
}
template <class Context>
uint32_t GetWorkspaceSize(const Context *context) {
    return asim_chip_of(context).GetLibApiWorkSpaceSize();
}
// Bytes of a block of UB, and of what one repeat of a vector instruction works on.
template <class Context>
uint32_t GetUbBlockSize(const Context *) {
    return 32;
}
template <class Context>
uint32_t GetVRegSize(const Context *) {
    return 256;
}
// Bytes of a line of the cache in front of global memory: 512 of an L2 line, half of it of a sector elsewhere.
template <class Context>
uint32_t GetCacheLineSize(const Context *) {
    return 256;
}
template <class Context>
uint32_t GetSectorCacheLineSize(const Context *context) {
    return GetCacheLineSize(context) / 2;
}
// Threads and caches that only later chips have; tiling functions name them on paths that this chip does not take.
template <class Context>
uint32_t GetSimtMaxThreadNum(const Context *) {
    return 0;
}
template <class Context>
uint32_t GetSimtMaxDCacheSize(const Context *) {
    return 0;
}
template <class Context>
uint32_t GetNddmaDcacheSize(const Context *) {
    return 0;
}

}  // namespace Base
}  // namespace Ops
