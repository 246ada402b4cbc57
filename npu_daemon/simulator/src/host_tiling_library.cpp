// The part of the host interface that operators link against: tiling structures, attributes, logging.
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <vector>

#include "asim/host/fault.h"
#include "asim/host/reached.h"
#include "asim/host/tiling_fields.h"
#include "base/alog_pub.h"
#include "base/err_msg.h"
#include "exe_graph/runtime/runtime_attrs.h"

namespace {

std::vector<uint8_t> &reached() {
    static std::vector<uint8_t> bits;
    return bits;
}

}  // namespace

void asim_host_reached(uint32_t number) {
    constexpr uint32_t kMaxReached = 1u << 18;  // those beyond are not noted
    if (number >= kMaxReached) return;
    if (reached().size() <= number / 8) reached().resize(number / 8 + 1);
    reached()[number / 8] |= static_cast<uint8_t>(1u << number % 8);
}

namespace asim::host {

std::string reached_digits() {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string digits;
    for (const uint8_t byte : reached()) {
        digits += kDigits[byte >> 4];
        digits += kDigits[byte & 15];
    }
    return digits;
}

void report_error(const char *code, const char *format, ...) {
    std::fprintf(stderr, "[ERROR] %s: ", code);
    va_list arguments;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    std::fputc('\n', stderr);
}

}  // namespace asim::host

int AlogCheckDebugLevel(unsigned int, int level) { return level == DLOG_WARN || level == DLOG_ERROR ? 1 : 0; }

int CheckLogLevel(int module, int level) { return AlogCheckDebugLevel(static_cast<unsigned int>(module), level); }

void AlogRecord(unsigned int module, unsigned int, int level, const char *format, ...) {
    if (AlogCheckDebugLevel(module, level) == 0) return;
    std::fputs(level == DLOG_ERROR ? "[ERROR] " : "[WARN] ", stderr);
    va_list arguments;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    std::fputc('\n', stderr);
}

namespace optiling {
namespace {

constexpr size_t kStructAlignment = 8;

size_t align_up(size_t value, size_t alignment) { return (value + alignment - 1) / alignment * alignment; }

}  // namespace

TilingDef::TilingDef(const char *name) : name_(name) {}
TilingDef::TilingDef(const TilingDef &) = default;
TilingDef &TilingDef::operator=(const TilingDef &) = default;
TilingDef::~TilingDef() = default;

size_t TilingDef::append(TilingFieldInfo field, size_t alignment) {
    field.offset = align_up(bytes_.size(), alignment);
    bytes_.resize(field.offset + field.bytes);
    fields_.push_back(field);
    return field.offset;
}

size_t TilingDef::add_field(const char *type, const char *name, size_t element_bytes, size_t array_length) {
    TilingFieldInfo field;
    field.type = type;
    field.name = name;
    field.array_length = array_length;
    field.bytes = element_bytes * (array_length == 0 ? 1 : array_length);
    return append(field, element_bytes);
}

size_t TilingDef::add_nested(const char *name, const TilingDef &member) {
    TilingFieldInfo field;
    field.type = member.GetTilingClassName();
    field.name = name;
    field.bytes = member.GetDataSize();
    field.nested = true;
    field.member_distance = reinterpret_cast<const char *>(&member) - reinterpret_cast<const char *>(this);
    return append(field, kStructAlignment);
}

const TilingDef &TilingDef::nested(const TilingFieldInfo &field) const {
    return *reinterpret_cast<const TilingDef *>(reinterpret_cast<const char *>(this) + field.member_distance);
}

size_t TilingDef::GetDataSize() const { return align_up(bytes_.size(), kStructAlignment); }

void TilingDef::SaveToBuffer(void *buffer, size_t capacity) const {
    const size_t bytes = GetDataSize();
    if (buffer == nullptr || bytes > capacity) {
        throw asim::host::HostFault("SaveToBuffer: " + name_ + " needs " + std::to_string(bytes) +
                                    " bytes, the buffer has " + std::to_string(buffer == nullptr ? 0 : capacity));
    }
    auto *target = static_cast<uint8_t *>(buffer);
    if (target != elsewhere_) {
        std::memset(target, 0, bytes);
        if (!bytes_.empty()) std::memcpy(target, data(), bytes_.size());
    }
    for (const TilingFieldInfo &field : fields_) {
        if (field.nested) nested(field).SaveToBuffer(target + field.offset, field.bytes);
    }
}

void TilingDef::SetDataPtr(void *data) {
    SaveToBuffer(data, GetDataSize());
    elsewhere_ = static_cast<uint8_t *>(data);
    for (const TilingFieldInfo &field : fields_) {
        if (field.nested) const_cast<TilingDef &>(nested(field)).SetDataPtr(elsewhere_ + field.offset);
    }
}

}  // namespace optiling

namespace gert {

void RuntimeAttrs::append_bytes(const void *bytes, size_t size) {
    const auto *first = static_cast<const uint8_t *>(bytes);
    auto value = std::make_shared<std::vector<uint8_t>>(first, first + size);
    value->resize(size < sizeof(uint64_t) ? sizeof(uint64_t) : size);  // may be read as a wider number
    values_.push_back(std::move(value));
}

void RuntimeAttrs::append_list(size_t count, const void *elements, size_t element_bytes) {
    const ContinuousVector header(count, count);
    std::vector<uint8_t> block(sizeof(header) + count * element_bytes);
    std::memcpy(block.data(), &header, sizeof(header));
    if (count != 0) std::memcpy(block.data() + sizeof(header), elements, count * element_bytes);
    append_bytes(block.data(), block.size());
}

void RuntimeAttrs::append(const std::vector<std::vector<int64_t>> &lists) {
    const size_t table_bytes = sizeof(ContinuousVectorVector) + lists.size() * sizeof(size_t);
    std::vector<uint8_t> block(table_bytes);
    const ContinuousVectorVector header(lists.size());
    std::memcpy(block.data(), &header, sizeof(header));
    for (size_t i = 0; i < lists.size(); ++i) {
        const size_t offset = block.size();
        const ContinuousVector list(lists[i].size(), lists[i].size());
        block.resize(offset + sizeof(list) + lists[i].size() * sizeof(int64_t));
        std::memcpy(block.data() + sizeof(header) + i * sizeof(size_t), &offset, sizeof(offset));
        std::memcpy(block.data() + offset, &list, sizeof(list));
        if (!lists[i].empty()) {
            std::memcpy(block.data() + offset + sizeof(list), lists[i].data(), lists[i].size() * sizeof(int64_t));
        }
    }
    append_bytes(block.data(), block.size());
}

}  // namespace gert
