// Template parameters of a kernel as ASCENDC_TPL_ARGS_DECL declares them, and how their values make a tiling key: one after the
// other from the lowest bit on, each in its bit width. A UINT stands in the key as its place in the list of its values, any other
// as itself. Everything is a constant expression. For host code and kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "template_constants.h"

namespace asim::tiling_template {

enum class Kind : uint8_t { Dtype, Datatype, Format, Uint, Bool, SharedKernelType, KernelType, Deterministic, TilingStruct };

constexpr uint32_t kMaxParameters = 64, kMaxNumbers = 2048, kKeyBits = 64;

constexpr const char *kind_name(Kind kind) {
    constexpr const char *names[] = {"DTYPE", "DATATYPE", "FORMAT", "UINT", "BOOL", "KERNEL_TYPE", "KERNEL_TYPE", "DETERMINISTIC", "TILING_STRUCT"};
    return names[static_cast<int>(kind)];
}

constexpr bool same(const char *first, const char *second) {
    while (*first != 0 && *first == *second) ++first, ++second;
    return *first == *second;
}

// A message, to be shown by the compiler or in a report.
class Text {
 public:
    constexpr Text() = default;
    constexpr size_t size() const { return length_; }
    constexpr const char *data() const { return text_; }
    constexpr Text &operator<<(const char *words) {
        while (*words != 0 && length_ + 1 < sizeof text_) text_[length_++] = *words++;
        return *this;
    }
    constexpr Text &operator<<(uint64_t number) {
        char digits[24] = {};
        size_t begin = sizeof digits - 1;
        do digits[--begin] = static_cast<char>('0' + number % 10);
        while ((number /= 10) != 0);
        return *this << digits + begin;
    }

 private:
    char text_[900] = {};
    size_t length_ = 0;
};

struct Interval {
    uint64_t first, last;
};

// The numbers behind the name of a parameter: for a UINT ranges and a list, for others a list.
class Values {
 public:
    constexpr Values(Kind kind, const uint64_t *numbers, size_t count) : uint_(kind == Kind::Uint), numbers_(numbers), count_(count) {}

    // What is wrong with how they are written, or nullptr.
    constexpr const char *malformed() const {
        if (!uint_) return intervals() == 0 ? "lists no value" : repeated();
        if (count_ == 0 || numbers_[0] > ASCENDC_TPL_UI_MIX) return "must begin with ASCENDC_TPL_UI_RANGE, ASCENDC_TPL_UI_LIST or ASCENDC_TPL_UI_MIX";
        if (numbers_[0] != ASCENDC_TPL_UI_LIST && (count_ < 2 || numbers_[1] > (count_ - 2) / 2)) return "has fewer ranges than it says";
        if (numbers_[0] == ASCENDC_TPL_UI_RANGE && count_ != 2 + 2 * numbers_[1]) return "has more numbers than ranges";
        if (intervals() == 0) return "lists no value";
        for (size_t index = 0; index < intervals(); ++index) {
            if (interval(index).last < interval(index).first) return "has a range that ends before it begins";
        }
        return repeated();
    }

    constexpr size_t intervals() const {
        if (!uint_) return count_ - references();
        return numbers_[0] == ASCENDC_TPL_UI_LIST ? count_ - 1 : count_ - 2 - ranges();
    }

    constexpr Interval interval(size_t index) const {
        if (!uint_) return {numbers_[without_references(index)], numbers_[without_references(index)]};
        if (index < ranges()) return {numbers_[2 + 2 * index], numbers_[3 + 2 * index]};
        const size_t place = numbers_[0] == ASCENDC_TPL_UI_LIST ? 1 + index : 2 + ranges() + index;
        return {numbers_[place], numbers_[place]};
    }

    constexpr uint64_t size() const {
        uint64_t sum = 0;
        for (size_t index = 0; index < intervals(); ++index) sum += interval(index).last - interval(index).first + 1;
        return sum;
    }

    constexpr uint64_t at(uint64_t position) const {
        size_t index = 0;
        for (; position > interval(index).last - interval(index).first; ++index) position -= interval(index).last - interval(index).first + 1;
        return interval(index).first + position;
    }

    // The place of a value in the list; size() if it is not there.
    constexpr uint64_t place_of(uint64_t value) const {
        uint64_t before = 0;
        for (size_t index = 0; index < intervals(); ++index) {
            const Interval each = interval(index);
            if (each.first <= value && value <= each.last) return before + value - each.first;
            before += each.last - each.first + 1;
        }
        return before;
    }
    constexpr bool has(uint64_t value) const { return place_of(value) < size(); }

    // The first value that stands for the type or layout of a tensor, or 0.
    constexpr uint64_t reference() const {
        for (size_t index = 0; index < count_ && !uint_; ++index) {
            if (numbers_[index] >= ASCENDC_TPL_INPUT_BIAS) return numbers_[index];
        }
        return 0;
    }

    constexpr void tell(Text &text) const {
        for (size_t index = 0; index < intervals(); ++index) {
            text << (index == 0 ? "" : ", ") << interval(index).first;
            if (interval(index).last != interval(index).first) text << " to " << interval(index).last;
        }
    }

 private:
    constexpr size_t ranges() const { return numbers_[0] == ASCENDC_TPL_UI_LIST ? 0 : numbers_[1]; }
    constexpr size_t references() const {
        size_t sum = 0;
        for (size_t index = 0; index < count_; ++index) sum += numbers_[index] >= ASCENDC_TPL_INPUT_BIAS;
        return sum;
    }
    constexpr size_t without_references(size_t index) const {
        size_t place = 0;
        for (;; ++place) {
            if (numbers_[place] < ASCENDC_TPL_INPUT_BIAS && index-- == 0) return place;
        }
    }
    constexpr const char *repeated() const {
        for (size_t index = 0; index < intervals(); ++index) {
            for (size_t other = 0; other < index; ++other) {
                if (interval(index).first <= interval(other).last && interval(other).first <= interval(index).last) return "has a value twice";
            }
        }
        return nullptr;
    }

    bool uint_;
    const uint64_t *numbers_;
    size_t count_;
};

// One line of a declaration or of a combination.
struct Item {
    Kind kind;
    const char *name;
    uint64_t bits;
    std::initializer_list<uint64_t> numbers;

    constexpr Values values() const { return {kind, numbers.begin(), numbers.size()}; }
};

// What ASCENDC_TPL_ARGS_DECL declares.
class Declaration {
 public:
    constexpr explicit Declaration(std::initializer_list<Item> items) {
        for (const Item &item : items) {
            if (count_ == kMaxParameters) {
                problem_ << "ASCENDC_TPL_ARGS_DECL has more than 64 parameters";
                return;
            }
            check(item);
            if (numbers_count_ + item.numbers.size() > kMaxNumbers) {
                problem_ << "ASCENDC_TPL_ARGS_DECL has more than 2048 numbers: write those that follow each other as ranges";
                return;
            }
            parameters_[count_++] = {item.kind, item.name, static_cast<uint32_t>(item.bits), bits_, numbers_count_, item.numbers.size()};
            for (const uint64_t number : item.numbers) numbers_[numbers_count_++] = number;
            bits_ += static_cast<uint32_t>(item.bits);
        }
        if (bits_ > kKeyBits && problem_.size() == 0) problem_ << "the parameters of ASCENDC_TPL_ARGS_DECL have " << bits_ << " bits together: a tiling key has 64";
    }

    // Why it is none, or nothing.
    constexpr const Text &problem() const { return problem_; }
    constexpr size_t size() const { return count_; }
    constexpr uint32_t bits() const { return bits_; }
    constexpr Kind kind(size_t index) const { return parameters_[index].kind; }
    constexpr const char *name(size_t index) const { return parameters_[index].name; }
    constexpr Values values(size_t index) const { return {kind(index), numbers_ + parameters_[index].first, parameters_[index].count}; }
    constexpr size_t index_of(const char *name, size_t likely) const {
        if (likely < count_ && same(parameters_[likely].name, name)) return likely;
        size_t index = 0;
        while (index < count_ && !same(parameters_[index].name, name)) ++index;
        return index;
    }

    // What stands in a key for a value; nothing else is as large as ~0.
    constexpr uint64_t code_of(size_t index, uint64_t value) const {
        const uint64_t code = kind(index) == Kind::Uint ? values(index).place_of(value) : value;
        const bool listed = kind(index) != Kind::Uint || code < values(index).size();
        return listed && fits(code, parameters_[index].bits) ? code : ~uint64_t{0};
    }
    constexpr uint64_t shifted(size_t index, uint64_t code) const { return code << parameters_[index].shift; }
    constexpr uint64_t code_in(size_t index, uint64_t key) const {
        const uint64_t code = key >> parameters_[index].shift;
        return parameters_[index].bits == kKeyBits ? code : code & ((uint64_t{1} << parameters_[index].bits) - 1);
    }
    // Whether a key has a value for each parameter, and no bits beside them.
    constexpr bool decodes(uint64_t key) const {
        for (size_t index = 0; index < count_; ++index) {
            if (kind(index) == Kind::Uint && code_in(index, key) >= values(index).size()) return false;
        }
        return bits_ >= kKeyBits || key >> bits_ == 0;
    }
    constexpr uint64_t value_in(size_t index, uint64_t key) const {
        const uint64_t code = code_in(index, key);
        return kind(index) == Kind::Uint ? values(index).at(code) : code;
    }
    constexpr void tell_names(Text &text) const {
        for (size_t index = 0; index < count_; ++index) text << (index == 0 ? "" : ", ") << name(index);
    }

 private:
    struct Parameter {
        Kind kind;
        const char *name;
        uint32_t bits, shift;
        size_t first, count;
    };

    static constexpr bool fits(uint64_t value, uint64_t bits) { return bits >= kKeyBits || value >> bits == 0; }

    constexpr void check(const Item &item) {
        if (problem_.size() != 0) return;
        const Values values = item.values();
        if (item.kind > Kind::SharedKernelType) {
            problem_ << "ASCENDC_TPL_ARGS_DECL takes ASCENDC_TPL_*_DECL";
        } else if (index_of(item.name, count_) != count_) {
            problem_ << "ASCENDC_TPL_ARGS_DECL has the parameter " << item.name << " twice";
        } else if (const char *reason = values.malformed()) {
            problem_ << "ASCENDC_TPL_" << kind_name(item.kind) << "_DECL " << item.name << " " << reason;
        } else if (item.bits == 0 || item.bits > kKeyBits) {
            problem_ << "ASCENDC_TPL_UINT_DECL " << item.name << " has a bit width of " << item.bits << ": expected 1 to 64";
        } else if (item.kind == Kind::Uint && !fits(values.size() - 1, item.bits)) {
            problem_ << "ASCENDC_TPL_UINT_DECL " << item.name << " has " << values.size() << " values, too many for a bit width of " << item.bits;
        } else {
            for (size_t index = 0; index < values.intervals() && item.kind != Kind::Uint && problem_.size() == 0; ++index) {
                if (fits(values.interval(index).first, item.bits)) continue;
                problem_ << "ASCENDC_TPL_" << kind_name(item.kind) << "_DECL " << item.name << " has the value " << values.interval(index).first
                         << ", which does not fit in its " << item.bits << (item.bits == 1 ? " bit" : " bits");
            }
        }
    }

    Parameter parameters_[kMaxParameters] = {};
    uint64_t numbers_[kMaxNumbers] = {};
    size_t count_ = 0, numbers_count_ = 0;
    uint32_t bits_ = 0;
    Text problem_;
};

}  // namespace asim::tiling_template

// What is said of a parameter is the same on both sides; only what becomes of the lists is not.
#define ASIM_TPL_ITEM(kind, name, bits, ...) \
    ::asim::tiling_template::Item { ::asim::tiling_template::Kind::kind, name, bits, {__VA_ARGS__} }
#define ASCENDC_TPL_DTYPE_DECL(x, ...) ASIM_TPL_ITEM(Dtype, #x, 8, __VA_ARGS__)
#define ASCENDC_TPL_DATATYPE_DECL(x, ...) ASIM_TPL_ITEM(Datatype, #x, 8, __VA_ARGS__)
#define ASCENDC_TPL_FORMAT_DECL(x, ...) ASIM_TPL_ITEM(Format, #x, 8, __VA_ARGS__)
#define ASCENDC_TPL_UINT_DECL(x, bw, ...) ASIM_TPL_ITEM(Uint, #x, bw, __VA_ARGS__)
#define ASCENDC_TPL_BOOL_DECL(x, ...) ASIM_TPL_ITEM(Bool, #x, 1, __VA_ARGS__)
#define ASCENDC_TPL_KERNEL_TYPE_DECL(x, ...) ASIM_TPL_ITEM(SharedKernelType, #x, 8, __VA_ARGS__)

// A static constant, as the declaration and everything that asks for it are in one namespace.
#define ASIM_TPL_DECLARE(...)                                                                                     \
    [[maybe_unused]] static constexpr ::asim::tiling_template::Declaration asim_template_parameters({__VA_ARGS__}); \
    static_assert(asim_template_parameters.problem().size() == 0, asim_template_parameters.problem());
