// Logging and checks of the operator libraries by domain (ops-math, ops-nn, ops-transformer). Errors go to standard error, where a
// failed tiling run shows its last lines; other levels are dropped. What a message is about is not evaluated.
#pragma once
#include <cstdint>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "graph/utils/type_utils.h"
#include "log/ops_log.h"

// Operators rely on this being visible here.
using std::string;

namespace Ops {
namespace Base {

// A name that may be missing.
inline const char *GetSafeStr(const char *text) { return text == nullptr ? "nil" : text; }
inline const char *GetSafeStr(const std::string &text) { return text.c_str(); }

// What a message is about: a name, or the type and name of the node of a context.
inline std::string GetOpInfo(const char *name) { return GetSafeStr(name); }
inline const std::string &GetOpInfo(const std::string &name) { return name; }
template <class Context>
std::string GetOpInfo(const Context *context) {
    if (context == nullptr) return "nil";
    return std::string(GetSafeStr(context->GetNodeType())) + ":" + GetSafeStr(context->GetNodeName());
}

inline std::string ToString(ge::DataType type) { return ge::TypeUtils::DataTypeToSerialString(type); }
inline std::string ToString(ge::Format format) { return ge::TypeUtils::FormatToSerialString(format); }

// "[2, 3]" of anything that has a size and elements.
template <class Item>
std::string ToString(const std::vector<Item> &items) {
    std::ostringstream text;
    text << '[';
    for (size_t i = 0; i < items.size(); ++i) text << (i == 0 ? "" : ", ") << items[i];
    text << ']';
    return text.str();
}
inline std::string ToString(const gert::Shape &shape) {
    std::vector<int64_t> extents;
    for (size_t i = 0; i < shape.GetDimNum(); ++i) extents.push_back(shape.GetDim(i));
    return ToString(extents);
}
inline std::string ToString(const gert::Shape *shape) { return shape == nullptr ? "nil" : ToString(*shape); }
template <class Item>
std::string ToString(const gert::TypedContinuousVector<Item> *items) {
    if (items == nullptr) return "nil";
    return ToString(std::vector<Item>(items->GetData(), items->GetData() + items->GetSize()));
}
template <class Item>
std::string ToString(const Item *items, size_t count) {
    return items == nullptr ? "nil" : ToString(std::vector<Item>(items, items + count));
}

}  // namespace Base
}  // namespace Ops

namespace asim::host {

// One part of a complaint as text; names and numbers as they are.
template <class Part>
std::string part_of_complaint(const Part &part) {
    if constexpr (std::is_convertible_v<Part, const char *>) {
        const char *text = part;
        return text == nullptr ? "" : text;
    } else if constexpr (std::is_convertible_v<Part, std::string>) {
        return part;
    } else if constexpr (std::is_enum_v<Part>) {
        return std::to_string(static_cast<int64_t>(part));
    } else if constexpr (std::is_arithmetic_v<Part>) {
        return std::to_string(part);
    } else {
        return "?";
    }
}

// Says "<operator>: <what is wrong>: <first>, <second>, ..." on standard error.
template <class About, class... Parts>
void complain(const char *what, const About &about, const Parts &...parts) {
    std::string text = part_of_complaint(about) + ": " + what;
    const char *separator = ": ";
    ((text += separator + part_of_complaint(parts), separator = ", "), ...);
    std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace asim::host

#define OP_LOGD(...) ((void)0)
#define OP_LOGI(...) ((void)0)
#define OP_LOGW(...) ((void)0)
#define OP_EVENT(...) ((void)0)
#define OP_LOGD_FULL(...) ((void)0)
#define OP_LOGI_FULL(...) ((void)0)
#define OP_LOGE(about, ...) OPS_LOG_STUB_E(about, __VA_ARGS__)
#define OP_LOGE_WITHOUT_REPORT(about, ...) OPS_LOG_STUB_E(about, __VA_ARGS__)
#define D_OP_LOGD(...) ((void)0)
#define D_OP_LOGI(...) ((void)0)
#define D_OP_LOGW(...) ((void)0)
#define D_OP_LOGE(about, ...) OPS_LOG_STUB_E(about, __VA_ARGS__)

#define OP_CHECK_IF(condition, log, action) OPS_LOG_STUB_IF(condition, log, action)
#define OP_CHECK_NULL_WITH_CONTEXT(context, pointer)                               \
    do {                                                                           \
        if ((pointer) == nullptr) {                                                \
            OPS_LOG_STUB_E(context, "%s is a null pointer", #pointer);             \
            return ge::GRAPH_FAILED;                                               \
        }                                                                          \
    } while (0)

#ifndef likely
#define likely(condition) __builtin_expect((condition), 1)
#endif
#ifndef unlikely
#define unlikely(condition) __builtin_expect((condition), 0)
#endif

// Complaints with a fixed form: operator, parameter, what it has, what it should have or why it is wrong.
#define OP_LOGE_WITH_INVALID_INPUT(...) ::asim::host::complain("invalid input", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_SHAPE(...) ::asim::host::complain("invalid shape of an input", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_SHAPESIZE(...) ::asim::host::complain("invalid size of an input", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_FORMAT(...) ::asim::host::complain("invalid format of an input", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_DTYPE(...) ::asim::host::complain("invalid type of an input", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_ATTR(...) ::asim::host::complain("invalid attribute", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_ATTR_SIZE(...) ::asim::host::complain("invalid length of an attribute", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPE(...) ::asim::host::complain("invalid shape", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPE_WITH_REASON(...) ::asim::host::complain("invalid shape", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPES_WITH_REASON(...) ::asim::host::complain("invalid shapes", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIM(...) ::asim::host::complain("invalid rank", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIM_WITH_REASON(...) ::asim::host::complain("invalid rank", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIMS_WITH_REASON(...) ::asim::host::complain("invalid ranks", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZE(...) ::asim::host::complain("invalid number of elements", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZE_WITH_REASON(...) ::asim::host::complain("invalid number of elements", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZES_WITH_REASON(...) ::asim::host::complain("invalid numbers of elements", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMAT(...) ::asim::host::complain("invalid format", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMAT_WITH_REASON(...) ::asim::host::complain("invalid format", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMATS_WITH_REASON(...) ::asim::host::complain("invalid formats", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPE(...) ::asim::host::complain("invalid type", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPE_WITH_REASON(...) ::asim::host::complain("invalid type", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPES_WITH_REASON(...) ::asim::host::complain("invalid types", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUM(...) ::asim::host::complain("invalid number of tensors", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUMS_WITH_REASON(...) ::asim::host::complain("invalid numbers of tensors", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUE(...) ::asim::host::complain("invalid value", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUE_WITH_REASON(...) ::asim::host::complain("invalid value", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUES_WITH_REASON(...) ::asim::host::complain("invalid values", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_LISTSIZE(...) ::asim::host::complain("invalid length of a list", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_LISTSIZE_WITH_REASON(...) ::asim::host::complain("invalid length of a list", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_STRIDE(...) ::asim::host::complain("invalid stride", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_ARGUMENT_WITH_REASON(...) ::asim::host::complain("invalid argument", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_GRAPH_NODE(...) ::asim::host::complain("invalid graph node", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_CONFIG(...) ::asim::host::complain("invalid configuration", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_CONFIG_WITH_REASON(...) ::asim::host::complain("invalid configuration", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_CONFIGS_WITH_REASON(...) ::asim::host::complain("invalid configurations", __VA_ARGS__)
