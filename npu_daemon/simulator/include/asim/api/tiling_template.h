// Tiling keys by template in kernels: which combinations of template parameters there are (ASCENDC_TPL_SEL), and what a tiling key
// chooses among them. The macros leave constant functions with names of C, which the build's own text behind that of the kernel finds
// from whatever namespace they are in (kernel_template.py).
#pragma once
#include "asim/api/language.h"
#include "host/tiling/template_parameters.h"

namespace asim::tiling_template {

// ASCENDC_TPL_ARGS_SEL.
struct Selection {
    std::initializer_list<Item> items;
};
using Selections = std::initializer_list<Selection>;

struct Slot {
    uint64_t type, format;
};

// What the kernel is built for: types and layouts of its inputs and outputs.
class Tensors {
 public:
    constexpr Tensors(std::initializer_list<Slot> inputs, std::initializer_list<Slot> outputs) : inputs_(inputs.size()), outputs_(outputs.size()) {
        for (size_t index = 0; index < inputs_ && index < kMost; ++index) slots_[0][index] = inputs.begin()[index];
        for (size_t index = 0; index < outputs_ && index < kMost; ++index) slots_[1][index] = outputs.begin()[index];
    }
    constexpr bool has(uint64_t reference) const { return place(reference) < std::min(kMost, of_output(reference) ? outputs_ : inputs_); }
    constexpr uint64_t value(Kind kind, uint64_t reference) const {
        const Slot &slot = slots_[of_output(reference)][place(reference)];
        return kind == Kind::Format ? slot.format : slot.type;
    }
    static constexpr bool of_output(uint64_t reference) { return reference >= ASCENDC_TPL_OUTPUT_BIAS; }
    static constexpr uint64_t place(uint64_t reference) {
        return reference - (of_output(reference) ? ASCENDC_TPL_OUTPUT_BIAS : ASCENDC_TPL_INPUT_BIAS);
    }

 private:
    static constexpr size_t kMost = 64;
    Slot slots_[2][kMost] = {};
    size_t inputs_, outputs_;
};

// Asks for a combination by its key, or by its number among all.
struct Ask {
    const Tensors &tensors;
    bool by_number;
    uint64_t number;
};

struct Choice {
    uint32_t found = 0;          // how many combinations have the key
    const char *other = nullptr; // parameter that has another value for these tensors
    bool deterministic = false;  // whether it is built only for reproducible sums
    uint64_t key = 0;
    uint64_t values[kMaxParameters] = {};
    uint32_t kernel_type = ASCENDC_TPL_MAX;

    constexpr bool built() const { return found == 1 && other == nullptr && !deterministic; }
};

constexpr uint32_t kNoType = ~uint32_t{0};

// KernelMetaType of an ASCENDC_TPL_ number.
constexpr uint32_t meta_type(uint64_t number) {
    constexpr uint32_t types[] = {KERNEL_TYPE_AIV_ONLY, KERNEL_TYPE_AIC_ONLY, kNoType, kNoType, KERNEL_TYPE_MIX_AIV_1_0, KERNEL_TYPE_MIX_AIC_1_0,
                                  KERNEL_TYPE_MIX_AIC_1_1, KERNEL_TYPE_MIX_AIC_1_2, KERNEL_TYPE_AICORE, kNoType, kNoType, KERNEL_TYPE_MIX_VECTOR_CORE};
    return number < ASCENDC_TPL_MAX ? types[number] : kNoType;
}

constexpr uint32_t task_type_of(uint32_t number, uint32_t otherwise) { return number == ASCENDC_TPL_MAX ? otherwise : meta_type(number); }

// The lines of a combination by parameter.
struct Lines {
    const Item *of[kMaxParameters] = {};
    const Item *kernel_type = nullptr, *deterministic = nullptr;

    constexpr Lines(const Declaration &declaration, const Selection &selection) {
        size_t next = 0;
        for (const Item &item : selection.items) {
            if (item.kind == Kind::KernelType) kernel_type = &item;
            if (item.kind == Kind::Deterministic) deterministic = &item;
            if (item.kind > Kind::SharedKernelType) continue;
            const size_t index = declaration.index_of(item.name, next);
            if (index < declaration.size()) of[index] = &item;
            next = index + 1;
        }
    }
    constexpr bool says_deterministic(bool value) const {
        return deterministic != nullptr && deterministic->numbers.size() == 1 && *deterministic->numbers.begin() == uint64_t{value};
    }
};

// Whether every value of a line is declared; else the first that is not.
constexpr bool declared(const Values &line, const Values &all, uint64_t &first) {
    for (size_t index = 0; index < line.intervals(); ++index) {
        const Interval each = line.interval(index);
        if (all.has(each.first) && all.place_of(each.last) == all.place_of(each.first) + each.last - each.first) continue;
        for (first = each.first; first <= each.last; ++first) {
            if (!all.has(first)) return false;
        }
    }
    return true;
}

constexpr Text line_problem(const Declaration &declaration, const Item &item) {
    Text text;
    const size_t index = declaration.index_of(item.name, 0);
    text << "ASCENDC_TPL_" << kind_name(item.kind) << "_SEL " << item.name << " ";
    uint64_t value = 0;
    if (index == declaration.size()) return text << "is not in ASCENDC_TPL_ARGS_DECL";
    if (declaration.kind(index) != item.kind) return text << "is declared by ASCENDC_TPL_" << kind_name(declaration.kind(index)) << "_DECL";
    if (const char *reason = item.values().malformed()) return text << reason;
    if (!declared(item.values(), declaration.values(index), value)) {
        text << "has the value " << value << ", which its ASCENDC_TPL_" << kind_name(item.kind) << "_DECL does not list: ";
        declaration.values(index).tell(text);
        return text;
    }
    return Text();
}

constexpr Text selection_problem(const Declaration &declaration, const Selection &selection) {
    const Lines lines(declaration, selection);
    Text text;
    bool shared = false;
    size_t count = 0;
    for (const Item &item : selection.items) {
        const bool one = item.numbers.size() == 1;
        if (item.kind == Kind::KernelType && (!one || meta_type(*item.numbers.begin()) == kNoType)) {
            return text << "ASCENDC_TPL_KERNEL_TYPE_SEL takes one kind of kernel that this chip has";
        }
        if (item.kind == Kind::Deterministic && !(one && *item.numbers.begin() <= 1)) return text << "ASCENDC_TPL_DETERMINISTIC_SEL takes true or false";
        if (item.kind > Kind::SharedKernelType) continue;
        const Text problem = line_problem(declaration, item);
        if (problem.size() != 0) return problem;
        shared |= item.kind == Kind::SharedKernelType;
        ++count;
    }
    for (size_t index = 0; index < declaration.size(); ++index) {
        if (lines.of[index] == nullptr) return text << "an ASCENDC_TPL_ARGS_SEL lacks the parameter " << declaration.name(index);
    }
    if (count != declaration.size()) return text << "an ASCENDC_TPL_ARGS_SEL has a parameter twice";
    if (shared && lines.kernel_type != nullptr) return text << "ASCENDC_TPL_KERNEL_TYPE_SEL and ASCENDC_TPL_SHARED_KERNEL_TYPE_SEL exclude each other";
    return text;
}

// What is wrong with a list of combinations, or nothing.
constexpr Text problem_of(const Declaration &declaration, Selections selections) {
    if (declaration.problem().size() != 0) return Text();
    if (selections.size() == 0) return Text() << "ASCENDC_TPL_SEL has no ASCENDC_TPL_ARGS_SEL";
    for (const Selection &selection : selections) {
        const Text text = selection_problem(declaration, selection);
        if (text.size() != 0) return text;
    }
    return Text();
}

constexpr uint64_t combinations(const Declaration &declaration, const Lines &lines) {
    uint64_t product = 1;
    for (size_t index = 0; index < declaration.size(); ++index) product *= lines.of[index]->values().size();
    return product;
}

// The values of a combination by its number, the first parameter turning fastest.
constexpr uint64_t key_of_number(const Declaration &declaration, const Lines &lines, uint64_t number) {
    uint64_t key = 0;
    for (size_t index = 0; index < declaration.size(); ++index) {
        const Values values = lines.of[index]->values();
        key |= declaration.shifted(index, declaration.code_of(index, values.at(number % values.size())));
        number /= values.size();
    }
    return key;
}

constexpr bool has_key(const Declaration &declaration, const Lines &lines, uint64_t key) {
    for (size_t index = 0; index < declaration.size(); ++index) {
        if (!lines.of[index]->values().has(declaration.value_in(index, key))) return false;
    }
    return true;
}

constexpr void fill(Choice &choice, const Declaration &declaration, const Lines &lines, const Ask &ask, uint64_t key) {
    choice.key = key;
    if (lines.kernel_type != nullptr) choice.kernel_type = static_cast<uint32_t>(*lines.kernel_type->numbers.begin());
    for (size_t index = 0; index < declaration.size(); ++index) {
        const Kind kind = declaration.kind(index);
        const uint64_t value = choice.values[index] = declaration.value_in(index, key);
        const uint64_t reference = kind == Kind::Datatype || kind == Kind::Format ? declaration.values(index).reference() : 0;
        if (reference != 0 && (!ask.tensors.has(reference) || ask.tensors.value(kind, reference) != value)) choice.other = declaration.name(index);
        if (kind == Kind::SharedKernelType) choice.kernel_type = static_cast<uint32_t>(value);
    }
}

constexpr Choice choice_of(const Declaration &declaration, Selections selections, const Ask &ask) {
    Choice choice;
    bool says[2] = {};
    for (const Selection &selection : selections) {
        for (const bool value : {false, true}) says[value] |= Lines(declaration, selection).says_deterministic(value);
    }
    if (!ask.by_number && !declaration.decodes(ask.number)) return choice;
    uint64_t left = ask.number;
    for (const Selection &selection : selections) {
        const Lines lines(declaration, selection);
        const uint64_t rows = ask.by_number ? combinations(declaration, lines) : 0;
        if (ask.by_number ? left < rows && choice.found == 0 : has_key(declaration, lines, ask.number)) {
            fill(choice, declaration, lines, ask, ask.by_number ? key_of_number(declaration, lines, left) : ask.number);
            choice.deterministic = says[false] && says[true] && !lines.says_deterministic(false);
            ++choice.found;
        }
        left -= left < rows ? 0 : rows;
    }
    return choice;
}

constexpr void tell_selections(Text &text, const Declaration &declaration, Selections selections) {
    for (const Selection &selection : selections) {
        const Lines lines(declaration, selection);
        text << (&selection == selections.begin() ? "" : " | ");
        for (size_t index = 0; index < declaration.size(); ++index) {
            text << (index == 0 ? "" : "; ") << declaration.name(index) << " ";
            lines.of[index]->values().tell(text);
        }
    }
}

// Why there is no kernel for a key, or nothing.
constexpr Text complaint_of(const Declaration &declaration, Selections selections, const Ask &ask) {
    const Choice choice = choice_of(declaration, selections, ask);
    Text text;
    if (choice.built()) return text;
    text << "tiling key " << ask.number;
    if (!declaration.decodes(ask.number)) return text << " holds no values of the parameters of ASCENDC_TPL_ARGS_DECL: set it with ASCENDC_TPL_SEL_PARAM";
    for (size_t index = 0; index < declaration.size(); ++index) {
        text << (index == 0 ? " (" : ", ") << declaration.name(index) << " = " << declaration.value_in(index, ask.number);
    }
    if (choice.found > 1) return text << ") is in more than one ASCENDC_TPL_ARGS_SEL";
    if (choice.other != nullptr) return text << ") is not built for this case: " << choice.other << " is declared to be what a tensor has, which is another";
    if (choice.deterministic) return text << ") is only built for deterministic computation (ASCENDC_TPL_DETERMINISTIC_SEL), which no case asks for";
    text << ") is none that ASCENDC_TPL_SEL has. It has: ";
    tell_selections(text, declaration, selections);
    return text;
}

// Why the template of the kernel does not take the declared parameters, or nothing: each is a type or a value.
constexpr Text mismatch_of(const Declaration &declaration, std::initializer_list<bool> types) {
    Text text;
    if (declaration.problem().size() != 0) return text;
    if (types.size() != declaration.size()) {
        text << "the kernel has " << types.size() << " template parameters, ASCENDC_TPL_ARGS_DECL declares " << declaration.size() << " (";
        declaration.tell_names(text);
        return text << ")";
    }
    for (size_t index = 0; index < types.size(); ++index) {
        const bool wanted = declaration.kind(index) == Kind::Datatype;
        if (types.begin()[index] == wanted) continue;
        return text << "template parameter " << declaration.name(index) << " of the kernel is a " << (wanted ? "value" : "type") << ": ASCENDC_TPL_"
                    << kind_name(declaration.kind(index)) << "_DECL declares a " << (wanted ? "type" : "value");
    }
    return text;
}

// The value as the literal that it would be in the kernel's source.
template <uint64_t value>
constexpr auto literal() {
    return static_cast<std::conditional_t<(value <= 0x7fffffff), int, std::conditional_t<(value >> 63 == 0), int64_t, uint64_t>>>(value);
}

}  // namespace asim::tiling_template

// The type of an element type code; void where kernels have none.
template <int code>
struct TypeFromId {
    using type = void;
};
#define ASIM_TYPE_OF_CODE(code, ...)  \
    template <>                       \
    struct TypeFromId<code> {         \
        using type = __VA_ARGS__;     \
    };
ASIM_TYPE_OF_CODE(C_DT_FLOAT, float)
ASIM_TYPE_OF_CODE(C_DT_FLOAT16, half)
ASIM_TYPE_OF_CODE(C_DT_BF16, bfloat16_t)
ASIM_TYPE_OF_CODE(C_DT_INT8, int8_t)
ASIM_TYPE_OF_CODE(C_DT_UINT8, uint8_t)
ASIM_TYPE_OF_CODE(C_DT_INT16, int16_t)
ASIM_TYPE_OF_CODE(C_DT_UINT16, uint16_t)
ASIM_TYPE_OF_CODE(C_DT_INT32, int32_t)
ASIM_TYPE_OF_CODE(C_DT_UINT32, uint32_t)
ASIM_TYPE_OF_CODE(C_DT_INT64, int64_t)
ASIM_TYPE_OF_CODE(C_DT_UINT64, uint64_t)
ASIM_TYPE_OF_CODE(C_DT_DOUBLE, double)
ASIM_TYPE_OF_CODE(C_DT_BOOL, bool)
ASIM_TYPE_OF_CODE(C_DT_INT4, AscendC::int4b_t)
#undef ASIM_TYPE_OF_CODE

#define ASCENDC_TPL_DTYPE_SEL(x, ...) ASIM_TPL_ITEM(Dtype, #x, 8, __VA_ARGS__)
#define ASCENDC_TPL_DATATYPE_SEL(x, ...) ASIM_TPL_ITEM(Datatype, #x, 8, __VA_ARGS__)
#define ASCENDC_TPL_FORMAT_SEL(x, ...) ASIM_TPL_ITEM(Format, #x, 8, __VA_ARGS__)
#define ASCENDC_TPL_UINT_SEL(x, ...) ASIM_TPL_ITEM(Uint, #x, 0, __VA_ARGS__)
#define ASCENDC_TPL_BOOL_SEL(x, ...) ASIM_TPL_ITEM(Bool, #x, 1, __VA_ARGS__)
#define ASCENDC_TPL_SHARED_KERNEL_TYPE_SEL(x, ...) ASIM_TPL_ITEM(SharedKernelType, #x, 8, __VA_ARGS__)
#define ASCENDC_TPL_KERNEL_TYPE_SEL(...) ASIM_TPL_ITEM(KernelType, "", 0, __VA_ARGS__)
#define ASCENDC_TPL_DETERMINISTIC_SEL(...) ASIM_TPL_ITEM(Deterministic, "", 0, __VA_ARGS__)
// Which structure host and kernel hand over, for builds of one shape; GET_TILING_DATA takes the default structure in all others.
#define ASCENDC_TPL_TILING_STRUCT_SEL(x, ...) ASIM_TPL_ITEM(TilingStruct, #x, 0, 0)
#define ASCENDC_TPL_ARGS_SEL(...)       \
    ::asim::tiling_template::Selection { \
        { __VA_ARGS__ }                  \
    }

#define ASCENDC_TPL_ARGS_DECL(x, ...)                                                              \
    ASIM_TPL_DECLARE(__VA_ARGS__)                                                                  \
    extern "C" inline constexpr const ::asim::tiling_template::Declaration &asim_tpl_declaration() { \
        return asim_template_parameters;                                                           \
    }
#define ASCENDC_TPL_SEL(...)                                                                                               \
    [[maybe_unused]] static constexpr ::asim::tiling_template::Text asim_template_problem =                                \
        ::asim::tiling_template::problem_of(asim_tpl_declaration(), {__VA_ARGS__});                                        \
    static_assert(asim_template_problem.size() == 0, asim_template_problem);                                               \
    extern "C" inline constexpr ::asim::tiling_template::Choice asim_tpl_choice(const ::asim::tiling_template::Ask &ask) {  \
        if (asim_tpl_declaration().problem().size() + asim_template_problem.size() != 0) return {};                        \
        return ::asim::tiling_template::choice_of(asim_tpl_declaration(), {__VA_ARGS__}, ask);                             \
    }                                                                                                                      \
    extern "C" inline constexpr ::asim::tiling_template::Text asim_tpl_complaint(const ::asim::tiling_template::Ask &ask) { \
        if (asim_tpl_declaration().problem().size() + asim_template_problem.size() != 0) return {};                        \
        return ::asim::tiling_template::complaint_of(asim_tpl_declaration(), {__VA_ARGS__}, ask);                          \
    }
