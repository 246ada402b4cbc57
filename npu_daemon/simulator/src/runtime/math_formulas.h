// Skeleton of the math library: a formula is applied chunk by chunk, in float for half operands unless it says otherwise.
#pragma once
#include <algorithm>

#include "asim/check/operand_overlap.h"
#include "asim/semantics/steps.h"
#include "math_sequences.h"

namespace asim {

// Specialised for each function: `pieces` of scratch, and apply(steps, dst, src, pieces, parameter), where dst may
// be src. `native` formulas work in half as it is.
template <Function F>
struct Formula;

// Of float in one round and without scratch, whatever buffer the call gets (asc-devkit, adv_api/detail/math).
template <Function F, typename T>
constexpr bool needs_no_scratch = std::is_same_v<T, float> && (F == Function::Floor || F == Function::Round || F == Function::Rint ||
                                                               F == Function::Log2 || F == Function::Log10);

// Returns how many elements are a chunk.
template <Function F, typename T>
uint32_t math_native(uint8_t *dst, const uint8_t *src, Scratch scratch, uint32_t count, float parameter) {
    if constexpr (needs_no_scratch<F, T>) {
        const Steps<T> all(count);
        Formula<F>::apply(all, reinterpret_cast<T *>(dst), reinterpret_cast<const T *>(src), Pieces<T>{}, parameter);
        return count;
    }
    const Pieces<T> pieces = divide<T>(Formula<F>::name, scratch, std::max(Formula<F>::pieces, 1u), count);
    const uint64_t taken = uint64_t{Formula<F>::pieces} * std::min(pieces.elems, count) * sizeof(T);
    for (const uint8_t *operand : {src, static_cast<const uint8_t *>(dst)}) {
        check_beside_scratch(Formula<F>::contract, operand, uint64_t{count} * sizeof(T), scratch.base, taken);
    }
    for (uint32_t done = 0; done < count; done += pieces.elems) {
        const Steps<T> steps(std::min(pieces.elems, count - done));
        Formula<F>::apply(steps, reinterpret_cast<T *>(dst) + done, reinterpret_cast<const T *>(src) + done, pieces, parameter);
    }
    return pieces.elems;
}

// Half operands in float: one more piece holds the converted operand and then the result.
template <Function F>
uint32_t math_widened(uint8_t *dst, const uint8_t *src, Scratch scratch, uint32_t count, float parameter) {
    const Pieces<float> pieces = divide<float>(Formula<F>::name, scratch, Formula<F>::pieces + 1, count);
    float *wide = pieces[Formula<F>::pieces];
    for (uint32_t done = 0; done < count; done += pieces.elems) {
        const Steps<float> steps(std::min(pieces.elems, count - done));
        const Shape shape = Shape::first(steps.count());
        auto *wide_bytes = reinterpret_cast<uint8_t *>(wide);
        const uint64_t offset = done * sizeof(half);
        cast<float, half>({wide_bytes}, {const_cast<uint8_t *>(src) + offset}, RoundMode::CAST_NONE, shape);
        Formula<F>::apply(steps, wide, wide, pieces, parameter);
        cast<half, float>({dst + offset}, {wide_bytes}, Formula<F>::narrowing, shape);
    }
    return pieces.elems;
}

template <Function F, typename T>
uint32_t math_formula(uint8_t *dst, const uint8_t *src, Scratch scratch, uint32_t count, float parameter) {
    if constexpr (std::is_same_v<T, half> && !Formula<F>::native) {
        return math_widened<F>(dst, src, scratch, count, parameter);
    } else {
        return math_native<F, T>(dst, src, scratch, count, parameter);
    }
}

// The values of the formula by the instructions of the published library, where those are other ones.
template <Function F, typename T>
void math(uint8_t *dst, const uint8_t *src, Scratch scratch, uint32_t count, float parameter) {
    check_contract(Formula<F>::contract, {dst, uint64_t{count} * sizeof(T)}, {{src, uint64_t{count} * sizeof(T)}});
    const Sequence sequence = published_sequence(F);
    if (sequence.steps == nullptr) {
        math_formula<F, T>(dst, src, scratch, count, parameter);
        return;
    }
    const uint32_t round = elements_of_round(sequence, sizeof(T), scratch);
    const ScratchUse use = scratch_use(Formula<F>::name, sequence, round, sizeof(T), count, scratch);
    use.must_not_hold(src, uint64_t{count} * sizeof(T));
    use.must_not_hold(dst, uint64_t{count} * sizeof(T));
    uint32_t chunk;
    {
        const ValuesOnly values;
        chunk = math_formula<F, T>(dst, src, scratch, count, parameter);
    }
    // Less scratch than the published library works with: in the rounds of the formula.
    issue_sequence(sequence, round == 0 ? chunk : round, dst, src, scratch, count, sizeof(T), parameter);
    use.lose();
}

#define ASIM_FORMULA(Name, Pieces_, Native)                                                                    \
    template <>                                                                                                \
    struct Formula<Function::Name> {                                                                           \
        static constexpr const char *name = #Name;                                                             \
        static constexpr LibraryContract contract = LibraryContract::Name;                                     \
        static constexpr uint32_t pieces = Pieces_;                                                            \
        static constexpr bool native = Native;                                                                 \
        static constexpr RoundMode narrowing = RoundMode::CAST_RINT;                                           \
        template <typename T>                                                                                  \
        static void apply(const Steps<T> &steps, T *dst, const T *src, const Pieces<T> &piece, float parameter); \
    };                                                                                                         \
    template void math<Function::Name, half>(uint8_t *, const uint8_t *, Scratch, uint32_t, float);            \
    template void math<Function::Name, float>(uint8_t *, const uint8_t *, Scratch, uint32_t, float);           \
    template <typename T>                                                                                      \
    void Formula<Function::Name>::apply(const Steps<T> &steps, T *dst, const T *src, const Pieces<T> &piece,   \
                                        [[maybe_unused]] float parameter)

}  // namespace asim
