// The vector instructions that the published math library issues where its formulas take other steps than ours.
//
// Values come from our formulas (math_formulas.h), what is traced and priced from these sequences: kinds and counts of
// asc-devkit, impl/adv_api/detail/math and activation, for dav-2201.
#pragma once
#include <initializer_list>

#include "asim/machine/call_sync.h"
#include "asim/semantics/math.h"
#include "asim/semantics/vector.h"
#include "scratch_use.h"

namespace asim {

// Issues the instructions of one round. Each works on the result of the one before, as the library's barriers between
// them have it: on elements of the operands' type in dst, on converted ones in the scratch buffer.
class Issue {
public:
    struct Round {
        uint8_t *dst;
        const uint8_t *src;
        uint8_t *scratch;
        uint32_t count;
    };

    Issue(const Round &round, uint32_t type_bytes) : round_(round), type_bytes_(type_bytes), bytes_(type_bytes) {}

    bool half_operands() const { return type_bytes_ == sizeof(half); }

    template <typename... Ops>
    void operator()(Ops... ops) {
        (step(ops), ...);
    }
    template <typename... Ops>
    void times(uint32_t times, Ops... ops) {
        for (; times > 0; --times) (step(ops), ...);
    }
    // Of `operand` beside the result.
    void with(Op op, const uint8_t *operand);
    // Conversions from and to half: what follows works on elements of the other type.
    void widen(const uint8_t *from);
    void widen() { widen(round_.src); }
    void narrow();
    // Half elements as the second operand of what follows; floats as the first one, where they are.
    void widen_other(const uint8_t *from);
    void take_float(const uint8_t *from);
    // The next instructions work on elements of `bytes` bytes.
    void on_elements_of(uint32_t bytes) { bytes_ = bytes; }
    // On packed bits of comparisons, 16 at a time.
    void on_bits(Op op);
    // On one repeat of the scratch buffer.
    void once(Op op);

private:
    void step(Op op);
    void emit(Op op, uint32_t bytes, uint32_t count, const uint8_t *out, std::initializer_list<const uint8_t *> in) const;
    bool converted() const { return bytes_ != type_bytes_; }
    uint8_t *value() const { return converted() ? round_.scratch : round_.dst; }
    const uint8_t *other() const;

    Round round_;
    uint32_t type_bytes_;
    uint32_t bytes_;            // of the elements worked on
    uint32_t steps_ = 0;
    const uint8_t *taken_ = nullptr;
};

// What the library issues for a function, round by round: the scratch buffer divided by so many elements of the operands.
struct Sequence {
    uint32_t float_parts = 0;
    uint32_t half_parts = 0;
    bool widens = false;            // half operands are computed in float
    void (*steps)(Issue &, float parameter) = nullptr;      // none: the formula's own instructions are the library's
};

void issue_lgamma(Issue &issue, float);
void issue_digamma(Issue &issue, float);

Sequence published_sequence(Function function);

// 0 if the scratch buffer is too small for the library.
uint32_t elements_of_round(const Sequence &sequence, uint32_t type_bytes, Scratch scratch);

void issue_sequence(const Sequence &sequence, uint32_t round_elems, uint8_t *dst, const uint8_t *src, Scratch scratch,
                    uint32_t count, uint32_t type_bytes, float parameter);

// What rounds of `round_elems` elements take of the scratch buffer, all of it where that is too small for the library.
ScratchUse scratch_use(const char *call, const Sequence &sequence, uint32_t round_elems, uint32_t type_bytes, uint32_t count, Scratch scratch);

// Power of half or float; an operand without a tensor is spread over the scratch buffer, once for the call.
uint32_t elements_of_power(uint32_t type_bytes, bool tensors, Scratch scratch);
ScratchUse power_scratch_use(uint32_t type_bytes, bool tensors, uint32_t count, Scratch scratch);
void issue_power(uint32_t type_bytes, uint8_t *dst, const uint8_t *base, const uint8_t *exponent, Scratch scratch, uint32_t count);

}  // namespace asim
