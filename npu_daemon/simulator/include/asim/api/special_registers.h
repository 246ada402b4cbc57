// The control register, saturation, the configuration of atomic copies, and what a core says of itself.
#pragma once
#include "asim/api/data_copy.h"
#include "asim/machine/refusal.h"

namespace AscendC {

enum class SaturationMode : uint8_t { FLOAT, CAST };

// Bit 48 of CTRL is the one that Atlas A2 has: 1 keeps infinities and NaN of half and bfloat16_t, as all results here do.
template <int8_t startBit, int8_t endBit>
__aicore__ inline int64_t GetCtrlSpr() {
    static_assert(0 <= startBit && startBit <= endBit && endBit <= 63, "GetCtrlSpr: startBit and endBit lie in 0 to 63, and the first is not behind the last");
    constexpr int kNonSaturating = 48;
    return startBit <= kNonSaturating && kNonSaturating <= endBit ? int64_t{1} << (kNonSaturating - startBit) : 0;
}
template <int8_t startBit, int8_t endBit>
__aicore__ inline void SetCtrlSpr(int64_t value) {
    static_assert(startBit == 48 && endBit == 48, "SetCtrlSpr: on Atlas A2 the bit 48 can be set alone");
    if (value != 0 && value != 1) asim::refuse(asim::Refusal::SpecialRegister, startBit, endBit);
    if (value == 0) asim::refuse(asim::Refusal::Saturation);
}

// FLOAT: whether infinities become the largest number; CAST: whether integers saturate, as they do.
template <SaturationMode mode>
__aicore__ inline bool GetSaturationFlag() {
    return mode == SaturationMode::CAST;
}
template <SaturationMode mode>
__aicore__ inline void SetSaturationFlag(bool enableSat) {
    if (enableSat != GetSaturationFlag<mode>()) asim::refuse(asim::Refusal::Saturation);
}

enum class AtomicDtype { ATOMIC_NONE = 0, ATOMIC_F32, ATOMIC_F16, ATOMIC_S16, ATOMIC_S32, ATOMIC_S8, ATOMIC_BF16 };
enum class AtomicOp { ATOMIC_SUM = 0 };

template <AtomicDtype type, AtomicOp op>
__aicore__ inline void SetStoreAtomicConfig() {
    static_assert(op == AtomicOp::ATOMIC_SUM, "SetStoreAtomicConfig sums");
    asim::set_atomic(type == AtomicDtype::ATOMIC_NONE ? asim::AtomicMode::None : asim::AtomicMode::Add);
    asim::note_store_atomic(static_cast<uint16_t>(type));
}
__aicore__ inline void GetStoreAtomicConfig(uint16_t &atomicType, uint16_t &atomicOp) {
    atomicType = asim::noted_store_atomic();
    atomicOp = 0;
}

__aicore__ inline void GetArchVersion(uint32_t &coreVersion) { coreVersion = 0x220; }     // dav-2201

// Grows with the place in the source: code has no addresses here that a kernel may know.
__aicore__ inline int64_t GetProgramCounter(int64_t line = __builtin_LINE()) { return line * 4; }

struct CheckLocalMemoryIAParam {
    CheckLocalMemoryIAParam() = default;
    CheckLocalMemoryIAParam(uint8_t which, uint32_t start, uint32_t end, bool scalar_read, bool scalar_write, bool vector_read, bool vector_write,
                            bool mte_read, bool mte_write, bool enable, uint32_t rest = 0)
        : enableBit(which), startAddr(start), endAddr(end), isScalarRead(scalar_read), isScalarWrite(scalar_write), isVectorRead(vector_read),
          isVectorWrite(vector_write), isMteRead(mte_read), isMteWrite(mte_write), isEnable(enable), reserved(rest) {}

    uint8_t enableBit = 0;
    uint32_t startAddr = 0, endAddr = 0;        // in 32 B; the first of them is not watched
    bool isScalarRead = false, isScalarWrite = false, isVectorRead = false, isVectorWrite = false, isMteRead = false, isMteWrite = false;
    bool isEnable = false;
    uint32_t reserved = 0;
};

__aicore__ inline void CheckLocalMemoryIA(const CheckLocalMemoryIAParam &checkParams) {
    const uint32_t kinds = (checkParams.isScalarRead ? 1u : 0) | (checkParams.isScalarWrite ? 2u : 0) | (checkParams.isVectorRead ? 4u : 0) |
                           (checkParams.isVectorWrite ? 8u : 0) | (checkParams.isMteRead ? 16u : 0) | (checkParams.isMteWrite ? 32u : 0);
    asim::watch_memory(checkParams.enableBit, checkParams.startAddr, checkParams.endAddr, checkParams.isEnable ? kinds : 0);
}

}  // namespace AscendC
