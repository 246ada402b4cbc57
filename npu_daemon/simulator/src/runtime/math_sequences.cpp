#include "math_sequences.h"

#include <algorithm>

#include "asim/semantics/lanes.h"

namespace asim {

namespace {

constexpr uint32_t kSplitElems = 32;        // rounds of a call are whole multiples
constexpr uint32_t kBitsPerHalf = 16;
constexpr uint32_t kPowerScalarBytes = 256;     // of Power's scratch, for the scalars that it selects

constexpr uint32_t sources_of(Op op) {
    switch (op) {
        case Op::Duplicate: return 0;
        case Op::Add: case Op::Sub: case Op::Mul: case Op::Div: case Op::Max: case Op::Min: case Op::And: case Op::Or:
        case Op::Compare: case Op::Select: return 2;
        default: return 1;
    }
}

Operand operand_of(Op op, const uint8_t *address, uint32_t bytes, uint32_t count, uint32_t widest_bytes) {
    const Lanes lanes{const_cast<uint8_t *>(address), 1, 8};
    const Shape shape = Shape::first(count);
    return bytes == sizeof(half) ? vector_operand<half>(op, "tensor", lanes, shape, widest_bytes)
                                 : vector_operand<float>(op, "tensor", lanes, shape, widest_bytes);
}

void emit_cast(const uint8_t *out, uint32_t out_bytes, const uint8_t *in, uint32_t in_bytes, uint32_t count) {
    constexpr uint32_t widest = sizeof(float);
    emit_vector(Op::Cast, widest, repeats_of(Shape::first(count), widest),
                {operand_of(Op::Cast, out, out_bytes, count, widest), operand_of(Op::Cast, in, in_bytes, count, widest)});
}

}  // namespace

void Issue::emit(Op op, uint32_t bytes, uint32_t count, const uint8_t *out, std::initializer_list<const uint8_t *> in) const {
    const auto operand = [&](const uint8_t *address) { return operand_of(op, address, bytes, count, bytes); };
    const uint32_t repeats = repeats_of(Shape::first(count), bytes);
    const uint8_t *const *sources = in.begin();
    switch (in.size()) {
        case 0: return emit_vector(op, bytes, repeats, {operand(out)});
        case 1: return emit_vector(op, bytes, repeats, {operand(out), operand(sources[0])});
        default: return emit_vector(op, bytes, repeats, {operand(out), operand(sources[0]), operand(sources[1])});
    }
}

const uint8_t *Issue::other() const {
    return converted() ? round_.scratch + (uint64_t{round_.count} * sizeof(float) + 31) / 32 * 32 : round_.scratch;
}

// The first instruction reads the source and writes the scratch buffer, the second takes that to where the value is.
void Issue::step(Op op) {
    if (op == Op::SetCmpMask) return emit_vector(op, sizeof(uint16_t), 1, {kNoOperand});
    const bool first = steps_ == 0, second = steps_ == 1;
    ++steps_;
    const uint8_t *out = first ? other() : value();
    const uint8_t *in = first ? round_.src : second ? (taken_ != nullptr ? taken_ : other()) : value();
    switch (sources_of(op)) {
        case 0: return emit(op, bytes_, round_.count, out, {});
        case 1: return emit(op, bytes_, round_.count, out, {in});
        default: return emit(op, bytes_, round_.count, out, {in, first ? round_.src : other()});
    }
}

void Issue::with(Op op, const uint8_t *operand) { emit(op, bytes_, round_.count, value(), {value(), operand}); }

void Issue::widen(const uint8_t *from) {
    on_elements_of(sizeof(float));
    steps_ = 2;     // the value is in the scratch buffer
    emit_cast(value(), sizeof(float), from, sizeof(half), round_.count);
}

void Issue::widen_other(const uint8_t *from) {
    on_elements_of(sizeof(float));
    emit_cast(other(), sizeof(float), from, sizeof(half), round_.count);
}

void Issue::take_float(const uint8_t *from) {
    on_elements_of(sizeof(float));
    steps_ = 1;     // the next instruction takes it to where the value is
    taken_ = from;
}

void Issue::narrow() {
    const uint8_t *wide = value();
    on_elements_of(sizeof(half));
    emit_cast(value(), sizeof(half), wide, sizeof(float), round_.count);
}

void Issue::on_bits(Op op) {
    const uint32_t words = (round_.count + kBitsPerHalf - 1) / kBitsPerHalf;
    emit(op, sizeof(half), words, other(), {other(), other()});
}

void Issue::once(Op op) { emit(op, sizeof(float), kUbBlockBytes / sizeof(float), round_.scratch, {}); }

namespace {

// ((c x^2 + c) x^2 + ...): the square twice, and `terms` more terms.
void series(Issue &issue, uint32_t terms) {
    issue(Op::Mul, Op::Mul, Op::Muls);
    issue.times(terms, Op::Adds, Op::Mul);
}

// The series for a square that is there, at whose root it ends.
void series_of_square(Issue &issue) {
    issue(Op::Muls, Op::Muls);
    issue.times(6, Op::Adds, Op::Mul);
    issue(Op::Adds, Op::Sqrt, Op::Mul);
}

// 1 where |x| is below a bound, times one result, and 1 minus that.
void choose(Issue &issue) { issue(Op::Mins, Op::Adds, Op::Cast, Op::Cast, Op::Muls, Op::Mul, Op::Muls, Op::Adds); }

void sign(Issue &issue) { issue(Op::Muls, Op::Abs, Op::Adds, Op::Div); }

// Both branches, one of half elements if the operands are.
void asin_of_half(Issue &issue) {
    issue.widen();
    issue(Op::Mul, Op::Muls, Op::Adds);
    series_of_square(issue);
    issue(Op::Muls, Op::Adds);
    issue.on_elements_of(sizeof(half));
    issue(Op::Abs);
    series(issue, 7);
    choose(issue);
    issue.on_elements_of(sizeof(float));
    issue(Op::Cast, Op::Mul, Op::Cast, Op::Add);
    issue.on_elements_of(sizeof(half));
    sign(issue);
    issue.on_elements_of(sizeof(float));
    issue(Op::Cast, Op::Mul);
    issue.narrow();
}

void asin(Issue &issue, float) {
    if (issue.half_operands()) return asin_of_half(issue);
    issue(Op::Mul, Op::Muls, Op::Adds, Op::Sqrt);
    series(issue, 7);
    issue(Op::Muls, Op::Adds, Op::Mul);
    series_of_square(issue);
    choose(issue);
    issue(Op::Mul, Op::Add);
    sign(issue);
    issue(Op::Mul);
}

// pi / 2 - asin(x), of half operands once more in float.
void acos(Issue &issue, float) {
    asin(issue, 0.0f);
    if (issue.half_operands()) issue.on_elements_of(sizeof(float));
    issue(Op::Adds, Op::Muls);
    if (issue.half_operands()) issue.narrow();
}

void atan(Issue &issue, float) {
    issue(Op::Mins, Op::Maxs, Op::Abs);
    series(issue, 4);
    issue(Op::Muls);
    for (int shifted = 0; shifted < 2; ++shifted) {
        issue(Op::Adds, Op::Adds, Op::Div, Op::Abs);
        series(issue, 4);
        issue(Op::Adds, Op::Min);
    }
    issue(Op::Muls, Op::Adds, Op::Adds, Op::Div, Op::Abs);
    series(issue, 6);
    issue(Op::Adds, Op::Adds, Op::Min);
    sign(issue);
    issue(Op::Mul);
}

// (-1)^n, and the odd series of sin.
void signed_sine(Issue &issue) {
    issue(Op::Mul, Op::Muls, Op::Cast, Op::Muls, Op::Muls, Op::Add, Op::Adds, Op::Muls);
    issue.times(4, Op::Adds, Op::Mul);
    issue(Op::Mul);
}

void sin(Issue &issue, float) {
    issue(Op::Muls, Op::Cast);
    issue.times(4, Op::Muls, Op::Sub);
    signed_sine(issue);
}

void cos(Issue &issue, float) {
    issue(Op::Muls, Op::Adds, Op::Cast);
    issue.times(2, Op::Muls, Op::Sub);
    issue(Op::Adds);
    issue.times(3, Op::Muls, Op::Sub);
    issue(Op::Adds);
    signed_sine(issue);
    issue(Op::Mins, Op::Maxs);
}

void tan(Issue &issue, float) {
    if (!issue.half_operands()) issue(Op::Adds);
    issue(Op::Muls, Op::Cast);
    issue.times(2, Op::Muls, Op::Sub);
    issue.times(2, Op::Adds, Op::Adds, Op::Muls, Op::Sub, Op::Sub, Op::Sub);
    issue(Op::Muls, Op::Sub, Op::Sub, Op::Sub, Op::Mul, Op::Muls);
    issue.times(3, Op::Adds, Op::Mul);
    issue(Op::Mul, Op::Div);
}

void cosh(Issue &issue, float) { issue(Op::Adds, Op::Exp, Op::Duplicate, Op::Div, Op::Add); }

void asinh(Issue &issue, float) {
    issue(Op::Abs, Op::Mul, Op::Adds, Op::Sqrt, Op::Add, Op::Ln);
    if (issue.half_operands()) issue(Op::Cast);
    sign(issue);
    issue(Op::Mul);
}

void acosh(Issue &issue, float) { issue(Op::Mul, Op::Adds, Op::Sqrt, Op::Add, Op::Div, Op::Mul, Op::Ln); }

void erf(Issue &issue, float) {
    issue(Op::Mins, Op::Maxs, Op::Mul, Op::Muls);
    issue.times(9, Op::Adds, Op::Mul);
    issue(Op::Adds, Op::Div);
}

void erfc(Issue &issue, float) {
    issue(Op::Mins, Op::Maxs, Op::Abs, Op::Adds, Op::Div, Op::Mins, Op::Muls);
    issue.times(7, Op::Adds, Op::Mul);
    issue(Op::Adds, Op::Adds);
    issue.times(4, Op::Mul, Op::Adds);
    issue(Op::Div, Op::Mul, Op::Muls, Op::Exp, Op::Mul, Op::Muls, Op::Adds, Op::Mul, Op::Add);
}

void exp(Issue &issue, float degree) {
    if (!issue.half_operands()) issue(Op::Adds);
    issue(Op::Cast, Op::Sub, Op::Exp, Op::Adds, Op::Adds, Op::Adds);
    issue.times(static_cast<uint32_t>(std::max(degree - 1.0f, 0.0f)), Op::Mul, Op::Muls, Op::Add);
    issue(Op::Mul);
}

void gelu(Issue &issue, float) {
    issue(Op::Mul, Op::Mul, Op::Muls, Op::Add, Op::Muls, Op::Mins, Op::Exp, Op::Abs, Op::Muls, Op::Exp, Op::Adds, Op::Div, Op::Mul);
}

void faster_gelu_v2(Issue &issue, float) {
    issue(Op::Muls, Op::Abs, Op::Mins, Op::Adds, Op::Mul, Op::Muls, Op::Adds, Op::Adds, Op::Abs, Op::Div, Op::Mul, Op::Adds, Op::Mul);
}

void sign_of(Issue &issue, float) {
    issue(Op::Duplicate, Op::Compare, Op::Compare);
    issue.times(2, Op::Duplicate, Op::SetCmpMask, Op::Select);
    issue(Op::Add);
}

// What follows base^exponent = e^(exponent ln |base|): the sign, and results that are 1 or no number.
void special_powers(Issue &issue) {
    issue(Op::Abs, Op::Cast, Op::Muls, Op::Cast, Op::Muls, Op::Sub, Op::Muls, Op::Adds, Op::Cast);
    issue(Op::ShiftRight, Op::CompareScalar, Op::Abs, Op::Cast, Op::Sub, Op::Abs, Op::CompareScalar);
    issue.on_bits(Op::And);
    issue(Op::SetCmpMask, Op::Select, Op::Mul);
    issue(Op::Abs, Op::CompareScalar, Op::CompareScalar);
    issue.on_bits(Op::And);
    issue(Op::CompareScalar, Op::CompareScalar);
    issue.on_bits(Op::Or);
    issue.on_bits(Op::And);
    issue(Op::SetCmpMask, Op::Select);
    issue(Op::Abs, Op::CompareScalar);
    issue.on_bits(Op::Or);
    issue(Op::CompareScalar, Op::CompareScalar);
    issue.on_bits(Op::Or);
    issue.on_bits(Op::Or);
    issue(Op::SetCmpMask, Op::Select);
}

}  // namespace

Sequence published_sequence(Function function) {
    switch (function) {
        case Function::Asin: return {4, 6, false, asin};
        case Function::Acos: return {4, 6, false, acos};
        case Function::Atan: return {5, 12, true, atan};
        case Function::Sin: return {3, 8, true, sin};
        case Function::Cos: return {3, 8, true, cos};
        case Function::Tan: return {4, 10, true, tan};
        case Function::Cosh: return {2, 6, true, cosh};
        case Function::Asinh: return {3, 6, true, asinh};
        case Function::Acosh: return {1, 4, true, acosh};
        case Function::Erf: return {3, 8, true, erf};
        case Function::Erfc: return {5, 12, true, erfc};
        case Function::ExpPrecise: return {3, 8, true, exp};
        case Function::Gelu: return {2, 2, false, gelu};
        case Function::FasterGeluV2: return {3, 3, false, faster_gelu_v2};
        case Function::Lgamma: return {8, 26, true, issue_lgamma};
        case Function::Digamma: return {7, 16, true, issue_digamma};
        case Function::Sign: return {3, 3, false, sign_of};
        default: return {};
    }
}

namespace {

// `tensors` temporary tensors of `round_elems` elements, of which the last round fills `count`, behind the first `offset` bytes.
struct Temporaries {
    uint64_t offset;
    uint32_t tensors;
    uint32_t elem_bytes;
    uint32_t round_elems;
    uint32_t count;
};

void add_temporaries(ScratchUse &use, const Temporaries &parts) {
    const uint64_t filled = uint64_t{std::min(parts.round_elems, parts.count)} * parts.elem_bytes;
    for (uint32_t i = 0; i < parts.tensors; ++i) use.add(parts.offset + uint64_t{i} * parts.round_elems * parts.elem_bytes, filled);
}

// The places that converted elements have in the trace: one behind the other, however long the round.
uint64_t converted_bytes(uint32_t round_elems, uint32_t count) {
    const uint64_t floats = uint64_t{std::min(round_elems, count)} * sizeof(float);
    return 2 * ((floats + kUbBlockBytes - 1) / kUbBlockBytes * kUbBlockBytes);
}

// Temporary tensors of floats.
uint32_t parts_of_power(uint32_t type_bytes, bool tensors) { return type_bytes == sizeof(half) ? 7 : tensors ? 4 : 5; }

}  // namespace

ScratchUse scratch_use(const char *call, const Sequence &sequence, uint32_t round_elems, uint32_t type_bytes, uint32_t count, Scratch scratch) {
    ScratchUse use(call, scratch);
    const bool halves = type_bytes == sizeof(half), converts = halves && sequence.widens;
    if (round_elems == 0) {
        use.add(0, scratch.bytes);
    } else if (converts) {
        add_temporaries(use, {0, sequence.half_parts / 2, sizeof(float), round_elems, count});
    } else {
        add_temporaries(use, {0, halves ? sequence.half_parts : sequence.float_parts, type_bytes, round_elems, count});
    }
    if (halves && round_elems != 0) use.add(0, converted_bytes(round_elems, count));
    return use;
}

uint32_t elements_of_round(const Sequence &sequence, uint32_t type_bytes, Scratch scratch) {
    const uint32_t parts = type_bytes == sizeof(half) ? sequence.half_parts : sequence.float_parts;
    return scratch.bytes / type_bytes / parts / kSplitElems * kSplitElems;
}

void issue_sequence(const Sequence &sequence, uint32_t round_elems, uint8_t *dst, const uint8_t *src, Scratch scratch,
                    uint32_t count, uint32_t type_bytes, float parameter) {
    const LibraryCall call;
    const bool converts = sequence.widens && type_bytes == sizeof(half);
    for (uint32_t done = 0; done < count; done += round_elems) {
        const uint64_t offset = uint64_t{done} * type_bytes;
        Issue issue({dst + offset, src + offset, scratch.base, std::min(round_elems, count - done)}, type_bytes);
        if (converts) issue.widen();
        sequence.steps(issue, parameter);
        if (converts) issue.narrow();
    }
}

uint32_t elements_of_power(uint32_t type_bytes, bool tensors, Scratch scratch) {
    if (scratch.bytes <= kPowerScalarBytes) return 0;
    return (scratch.bytes - kPowerScalarBytes) / sizeof(float) / parts_of_power(type_bytes, tensors) / kSplitElems * kSplitElems;
}

ScratchUse power_scratch_use(uint32_t type_bytes, bool tensors, uint32_t count, Scratch scratch) {
    const uint32_t round = elements_of_power(type_bytes, tensors, scratch);
    ScratchUse use("Power", scratch);
    use.add(0, kPowerScalarBytes);
    add_temporaries(use, {kPowerScalarBytes, parts_of_power(type_bytes, tensors), sizeof(float), round, count});
    if (type_bytes == sizeof(half)) use.add(kPowerScalarBytes, converted_bytes(round, count));
    return use;
}

void issue_power(uint32_t type_bytes, uint8_t *dst, const uint8_t *base, const uint8_t *exponent, Scratch scratch, uint32_t count) {
    const LibraryCall call;
    const bool tensors = base != nullptr && exponent != nullptr;
    const uint32_t round = elements_of_power(type_bytes, tensors, scratch);
    uint8_t *work = scratch.base + kPowerScalarBytes;
    uint8_t *spread = work + uint64_t{2} * round * sizeof(float);       // behind what the steps work on
    Issue setup({dst, work, scratch.base, std::min(round, count)}, sizeof(float));
    setup.once(Op::Duplicate);
    setup.once(Op::Duplicate);
    if (!tensors) Issue({spread, spread, spread, std::min(round, count)}, sizeof(float))(Op::Duplicate);
    for (uint32_t done = 0; done < count; done += round) {
        const auto at = [&](const uint8_t *tensor) { return tensor == nullptr ? spread : tensor + uint64_t{done} * type_bytes; };
        Issue issue({dst + uint64_t{done} * type_bytes, at(base), work, std::min(round, count - done)}, type_bytes);
        if (type_bytes == sizeof(half)) {
            if (exponent != nullptr) issue.widen_other(at(exponent));
            base != nullptr ? issue.widen(at(base)) : issue.take_float(spread);
        }
        issue(Op::Abs, Op::Ln);
        type_bytes == sizeof(half) && exponent != nullptr ? issue(Op::Mul) : issue.with(Op::Mul, at(exponent));
        issue(Op::Exp);
        special_powers(issue);
        if (type_bytes == sizeof(half)) issue.narrow();
    }
}

}  // namespace asim
