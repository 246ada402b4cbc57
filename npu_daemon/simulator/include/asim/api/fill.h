// InitGlobalMemory, InitOutput and Fill: one value written to a run of global memory.
#pragma once
#include "asim/api/data_copy.h"
#include "asim/api/math.h"
#include "asim/machine/call_sync.h"
#include "asim/machine/fault.h"

namespace AscendC {

// `bytes` bytes of UB become repetitions of the value: vector instructions where the element has 16 or 32 bits, or can be
// written as such.
template <typename T>
__aicore__ inline void fill_ub(uint8_t *base, uint32_t bytes, T value) {
    uint8_t pattern[8];
    for (uint32_t at = 0; at < sizeof pattern; at += sizeof(T)) std::memcpy(pattern + at, &value, sizeof(T));
    uint32_t words[2];
    std::memcpy(words, pattern, sizeof words);
    const LocalTensor<uint32_t> all(base, bytes, TPosition::VECCALC);
    if (words[0] == words[1]) {
        Duplicate(all, words[0], static_cast<int32_t>(bytes / sizeof(uint32_t)));
        return;
    }
    for (uint32_t i = 0; i < bytes / sizeof(uint32_t); ++i) all.SetValue(i, words[i % 2]);
    asim::synchronise(asim::Pipe::S, asim::Pipe::MTE3);
}

// Fills free unified buffer once, then copies it as often as it takes.
template <typename T>
__aicore__ inline void Fill(const GlobalTensor<T> &gmWorkspaceAddr, const uint64_t size, const T value) {
    constexpr uint32_t kLargestBytes = 65504;   // of one copy: 2047 data blocks
    const asim::Scratch free = asim::remaining_scratch();
    const uint64_t total_bytes = size * sizeof(T);
    const uint64_t padded_bytes = AlignUp(total_bytes, uint64_t{asim::kUbBlockBytes});
    const auto buffer_bytes = static_cast<uint32_t>(
        std::min<uint64_t>(padded_bytes, std::min(free.bytes, kLargestBytes) / asim::kUbBlockBytes * asim::kUbBlockBytes));
    if (total_bytes == 0) return;
    if (buffer_bytes == 0) {
        asim::fault(asim::FaultKind::RuntimeFault, "Fill", "no unified buffer is left to copy the value from");
    }
    asim::synchronise(asim::Pipe::MTE3, asim::Pipe::V);
    fill_ub(free.base, buffer_bytes, value);
    asim::synchronise(asim::Pipe::V, asim::Pipe::MTE3);
    const LocalTensor<T> filled(free.base, buffer_bytes, TPosition::VECCALC);
    for (uint64_t done = 0; done < total_bytes; done += buffer_bytes) {
        const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(buffer_bytes, total_bytes - done));
        DataCopyPad(gmWorkspaceAddr[done / sizeof(T)], filled, DataCopyExtParams(1, bytes, 0, 0, 0));
    }
    asim::synchronise(asim::Pipe::MTE3, asim::Pipe::V);
}

// The value converts to the element type of the tensor.
template <typename T>
struct ElementOf {
    using Type = T;
};

template <typename T>
__aicore__ inline void InitGlobalMemory(GlobalTensor<T> gmWorkspaceAddr, const uint64_t size,
                                        const typename ElementOf<T>::Type value) {
    Fill<T>(gmWorkspaceAddr, size, value);
}

template <typename T>
__aicore__ inline void InitOutput(GlobalTensor<T> gmWorkspaceAddr, uint32_t size, typename ElementOf<T>::Type value = T(0)) {
    Fill<T>(gmWorkspaceAddr, size, value);
}

}  // namespace AscendC
