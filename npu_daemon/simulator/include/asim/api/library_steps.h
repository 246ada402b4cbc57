// What library calls are composed of where the header composes them: instructions on the first elements of their operands, each
// with the barrier that the published library issues behind it.
#pragma once
#include "asim/api/math.h"
#include "asim/api/sync.h"
#include "asim/api/vector_cast.h"
#include "asim/api/vector_compare.h"
#include "asim/api/vector_elementwise.h"
#include "asim/semantics/rows.h"

namespace AscendC {
namespace composed_calls {

using asim::ComposedCall;
using asim::Demand;
using asim::LibraryContract;
using asim::Quantity;

// Unified buffer that nothing of the kernel occupies.
inline LocalTensor<uint8_t> free_scratch() {
    LocalTensor<uint8_t> scratch;
    PopStackBuffer<uint8_t, TPosition::LCM>(scratch);
    return scratch;
}

template <typename T>
asim::Scratch bytes_of(const LocalTensor<T> &tensor) {
    return {tensor.bytes(), tensor.GetSize() * static_cast<uint32_t>(sizeof(T))};
}

// The first `count` elements of a result, of the sources and the temporary buffer lie as the row of the call has them.
template <typename T, typename... Sources>
void check_operands(LibraryContract call, const LocalTensor<T> &dst, uint32_t count, const LocalTensor<uint8_t> &scratch,
                    const LocalTensor<Sources> &...sources) {
    const uint64_t bytes = uint64_t{count} * sizeof(T);
    (asim::check_operands(call, dst.bytes(), bytes, sources.bytes(), uint64_t{count} * sizeof(Sources)), ...);
    asim::check_beside_scratch(call, dst.bytes(), bytes, scratch.bytes(), scratch.GetSize());
    (asim::check_beside_scratch(call, sources.bytes(), uint64_t{count} * sizeof(Sources), scratch.bytes(), scratch.GetSize()), ...);
}

template <typename T>
class Steps {
public:
    using Tensor = LocalTensor<T>;

    explicit Steps(uint32_t count) : count_(static_cast<int32_t>(count)) {}

    uint32_t count() const { return static_cast<uint32_t>(count_); }

#define ASIM_STEP(name, Name)                                                              \
    void name(const Tensor &dst, const Tensor &left, const Tensor &right) const {          \
        Name(dst, left, right, count_);                                                    \
        PipeBarrier<PIPE_V>();                                                             \
    }
    ASIM_STEP(add, Add)
    ASIM_STEP(sub, Sub)
    ASIM_STEP(mul, Mul)
    ASIM_STEP(div, Div)
    ASIM_STEP(max, Max)
    ASIM_STEP(min, Min)
#undef ASIM_STEP
#define ASIM_STEP(name, Name)                                             \
    void name(const Tensor &dst, const Tensor &src, T scalar) const {     \
        Name(dst, src, scalar, count_);                                   \
        PipeBarrier<PIPE_V>();                                            \
    }
    ASIM_STEP(adds, Adds)
    ASIM_STEP(muls, Muls)
    ASIM_STEP(maxs, Maxs)
    ASIM_STEP(mins, Mins)
    ASIM_STEP(axpy, Axpy)
#undef ASIM_STEP
#define ASIM_STEP(name, Name)                                   \
    void name(const Tensor &dst, const Tensor &src) const {     \
        Name(dst, src, count_);                                 \
        PipeBarrier<PIPE_V>();                                  \
    }
    ASIM_STEP(exp, Exp)
    ASIM_STEP(ln, Ln)
    ASIM_STEP(sqrt, Sqrt)
    ASIM_STEP(abs, Abs)
    ASIM_STEP(rsqrt, Rsqrt)
    ASIM_STEP(reciprocal, Reciprocal)
#undef ASIM_STEP
    void fill(const Tensor &dst, T value) const {
        Duplicate(dst, value, count_);
        PipeBarrier<PIPE_V>();
    }

    template <typename From>
    void cast(const Tensor &dst, const LocalTensor<From> &src, RoundMode mode = RoundMode::CAST_NONE) const {
        Cast(dst, src, mode, static_cast<uint32_t>(count_));
        PipeBarrier<PIPE_V>();
    }

private:
    int32_t count_;
};

// Runs `work` in counter mode, so that instructions without a mask of their own take the first `count` elements.
template <typename Work>
void counted(uint32_t count, Work work) {
    SetMaskCount();
    SetVectorMask<float, MaskMode::COUNTER>(0, count);
    work();
    SetMaskNorm();
    ResetMask();
}

// One pipe waits for what another has been given so far.
template <HardEvent event>
void await() {
    const auto id = static_cast<int32_t>(asim::fetch_event_id(source_pipe(event), target_pipe(event)));
    SetFlag<event>(id);
    WaitFlag<event>(id);
}

constexpr uint64_t kRegisterMask = 0;       // of instructions that take the mask register as it is
constexpr uint32_t kFloatsOfRepeat = asim::kRepeatBytes / sizeof(float);
constexpr uint32_t kFloatsOfBlock = asim::kUbBlockBytes / sizeof(float);

// Equal pieces of a scratch buffer, whole numbers of 32 elements as the published library divides it.
template <typename T>
struct Pieces {
    LocalTensor<T> base;
    uint32_t elems;
    LocalTensor<T> operator[](uint32_t index) const { return base[index * elems]; }
};

template <typename T>
Pieces<T> divide(ComposedCall call, const LocalTensor<uint8_t> &scratch, uint32_t pieces) {
    constexpr uint32_t kElems = 32;
    asim::check_scratch(call, bytes_of(scratch), uint64_t{pieces} * kElems * sizeof(T));
    const LocalTensor<T> base = scratch.template ReinterpretCast<T>();
    return {base, base.GetSize() / pieces / kElems * kElems};
}

// Calls `work(first element, number of elements)` for rounds of at most `elems`.
template <typename Work>
void in_rounds(uint32_t count, uint32_t elems, Work work) {
    for (uint32_t done = 0; done < count; done += elems) work(done, count - done < elems ? count - done : elems);
}

}  // namespace composed_calls
}  // namespace AscendC
