#include "asim/machine/device_output.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "asim/machine/block.h"
#include "asim/machine/fault.h"
#include "asim/machine/kernel_memory.h"
#include "asim/machine/local_memory.h"
#include "asim/machine/process.h"
#include "asim/numeric/types.h"
#include "asim/trace/writer.h"

namespace asim {

namespace {

constexpr uint64_t kMostFormat = 4096;
constexpr uint64_t kMostText = 1024;
constexpr uint64_t kMostWords = 256;        // of an assertion
constexpr uint32_t kMostValues = 64;
constexpr size_t kMostFigures = 3;          // of a width or a precision

bool g_shown = false;

// One conversion of a format: its flags, width and precision, without what says how wide the value is.
struct Conversion {
    std::string options;
    char letter = 0;
};

Conversion read_conversion(const std::string &format, size_t &at) {
    Conversion conversion{"%"};
    size_t figures = 0;
    for (; at < format.size(); ++at) {
        const char character = format[at];
        if (std::strchr("hlLqjzt", character) != nullptr) continue;
        if (std::strchr("-+ #.", character) != nullptr) {
            conversion.options += character, figures = 0;
        } else if (character >= '0' && character <= '9') {
            if (figures++ < kMostFigures) conversion.options += character;
        } else {
            conversion.letter = format[at++];
            break;
        }
    }
    return conversion;
}

template <typename T>
std::string shown(const std::string &format, T value) {
    char text[2048];
    snprintf(text, sizeof text, format.c_str(), value);
    return text;
}

std::string converted(const Conversion &conversion, const PrintValue &value) {
    double number;
    std::memcpy(&number, &value.bits, sizeof number);
    const auto integer = [&](const char *letters) {
        const bool chosen = std::strchr(letters, conversion.letter) != nullptr;
        return conversion.options + "ll" + (chosen ? conversion.letter : letters[0]);
    };
    switch (value.kind) {
        case PrintKind::Text: return shown(conversion.options + "s", kernel_text(reinterpret_cast<const char *>(value.bits), kMostText).c_str());
        case PrintKind::Address: return shown(std::string("0x%llx"), static_cast<unsigned long long>(value.bits));
        case PrintKind::Float: {
            const bool chosen = std::strchr("fFeEgGaA", conversion.letter) != nullptr;
            return shown(conversion.options + (chosen ? conversion.letter : 'g'), number);
        }
        case PrintKind::Signed:
            if (conversion.letter == 'c') return std::string(1, static_cast<char>(value.bits));
            if (std::strchr("fFeEgGaA", conversion.letter) != nullptr) return shown(conversion.options + conversion.letter, static_cast<double>(static_cast<int64_t>(value.bits)));
            return shown(integer("diuxXo"), static_cast<long long>(value.bits));
        default:
            if (conversion.letter == 'c') return std::string(1, static_cast<char>(value.bits));
            return shown(integer("udixXo"), static_cast<unsigned long long>(value.bits));
    }
}

// The text that a format and values of a kernel stand for.
std::string formatted(const char *format_of_kernel, const PrintValue *values, uint32_t count) {
    if (count > 0) kernel_access(values, uint64_t{std::min(count, kMostValues)} * sizeof *values, false);
    const std::string format = kernel_text(format_of_kernel, kMostFormat);
    std::string text;
    uint32_t next = 0;
    for (size_t at = 0; at < format.size();) {
        if (format[at] != '%') {
            text += format[at++];
            continue;
        }
        const Conversion conversion = read_conversion(format, ++at);
        if (conversion.letter == '%' || conversion.letter == 0) {
            text += '%';
        } else if (next < std::min(count, kMostValues)) {
            text += converted(conversion, values[next++]);
        }
    }
    return text;
}

// An element of a dump as a number.
double number_at(const uint8_t *element, DumpType type, uint32_t bytes) {
    uint64_t bits = 0;
    std::memcpy(&bits, element, bytes);
    const auto as = [&](auto value) {
        std::memcpy(static_cast<void *>(&value), &bits, sizeof value);
        return static_cast<double>(static_cast<float>(value));
    };
    switch (type) {
        case DumpType::Half: return as(half{});
        case DumpType::Bfloat16: return as(bfloat16_t{});
        case DumpType::Float: return as(float{});
        case DumpType::Double: return as(double{});
        case DumpType::Signed: return static_cast<double>(static_cast<float>(static_cast<int64_t>(bits << (64 - 8 * bytes)) >> (64 - 8 * bytes)));
        default: return static_cast<double>(static_cast<float>(bits));
    }
}

// Elements of a dump lie in any memory of the core; those of a cube core are none of the scalar unit's.
void check_dump(const void *values, uint64_t bytes) {
    const Space space = local_space_of(values);
    if (space == Space::Ub || space == Space::Gm) return kernel_access(values, bytes, false);
    const LocalMemory &memory = block().memories[static_cast<uint32_t>(space)];
    if (bytes <= static_cast<uint64_t>(memory.base + memory.bytes - static_cast<const uint8_t *>(values))) return;
    fault(FaultKind::RuntimeFault, "DumpTensor", "%llu bytes run past the end of their memory", static_cast<unsigned long long>(bytes));
}

}  // namespace

void show_device_output() { g_shown = true; }

int device_print(const char *format, const PrintValue *values, uint32_t count) {
    if (!g_shown) return 0;
    const std::string text = formatted(format, values, count);
    fwrite(text.data(), 1, text.size(), stdout);
    return static_cast<int>(text.size());
}

void dump_values(const void *values, DumpType type, uint32_t element_bytes, uint32_t description, uint32_t count) {
    if (!g_shown) return;
    const bool sized = element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8;
    if (!sized || type > DumpType::Unsigned) fault(FaultKind::RuntimeFault, "DumpTensor", "elements of %u bytes cannot be shown", element_bytes);
    check_dump(values, uint64_t{count} * element_bytes);
    printf("DumpTensor: desc=%u, %u elements: [", description, count);
    const auto *element = static_cast<const uint8_t *>(values);
    for (uint32_t i = 0; i < count; ++i, element += element_bytes) printf(i ? ", %g" : "%g", number_at(element, type, element_bytes));
    printf("]\n");
}

void assertion_failed(const char *condition, const char *format, const PrintValue *values, uint32_t count) {
    std::string words = formatted(format, values, count).substr(0, kMostWords);
    std::replace(words.begin(), words.end(), '\n', ' ');
    fault(FaultKind::RuntimeFault, "ascendc_assert", "assertion `%s' does not hold. %s", kernel_text(condition, kMostWords).c_str(), words.c_str());
}

int64_t read_system_counter() {
    Record record{};
    record.op = Op::ReadClock;
    emit(record, {});
    return ++block().clock_reads;
}

}  // namespace asim
