// Stands in for the ACL runtime under an aclnn example program: memory is host memory, and the first call of an
// aclnn...GetWorkspaceSize function is written down (as JSON, with the bytes of its tensors) instead of computed.
// The second phase of that call fills tensor number n (from 1) with the byte n, so that what the program then
// writes to files tells which tensor each file comes from. ASCEND_GYM_RECORD names the folder to write to.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

typedef int aclError;
typedef int aclnnStatus;
typedef void *aclrtStream;
typedef void *aclrtContext;
typedef uint16_t aclFloat16;
#if !defined(__clang__)
typedef _Float16 __fp16;  // the device compiler's name, which programs for it use on the host as well
#endif

enum aclDataType {
    ACL_DT_UNDEFINED = -1, ACL_FLOAT = 0, ACL_FLOAT16 = 1, ACL_INT8 = 2, ACL_INT32 = 3, ACL_UINT8 = 4,
    ACL_INT16 = 6, ACL_UINT16 = 7, ACL_UINT32 = 8, ACL_INT64 = 9, ACL_UINT64 = 10, ACL_DOUBLE = 11,
    ACL_BOOL = 12, ACL_STRING = 13, ACL_COMPLEX64 = 16, ACL_COMPLEX128 = 17, ACL_BF16 = 27, ACL_INT4 = 29,
    ACL_COMPLEX32 = 33, ACL_HIFLOAT8 = 34, ACL_FLOAT8_E5M2 = 35, ACL_FLOAT8_E4M3FN = 36, ACL_FLOAT8_E8M0 = 37,
    ACL_FLOAT4_E2M1 = 40, ACL_FLOAT4_E1M2 = 41,
};
enum aclFormat {
    ACL_FORMAT_UNDEFINED = -1, ACL_FORMAT_NCHW = 0, ACL_FORMAT_NHWC = 1, ACL_FORMAT_ND = 2,
    ACL_FORMAT_NC1HWC0 = 3, ACL_FORMAT_NC1HWC0_C04 = 12, ACL_FORMAT_HWCN = 16, ACL_FORMAT_NC = 35, ACL_FORMAT_FRACTAL_Z = 4, ACL_FORMAT_NDHWC = 27, ACL_FORMAT_FRACTAL_NZ = 29,
    ACL_FORMAT_NCDHW = 30, ACL_FORMAT_NDC1HWC0 = 32, ACL_FORMAT_NCL = 47,
};
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY };
enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE,
};
constexpr int ACL_SUCCESS = 0;
constexpr int ACL_ERROR_NONE = 0;
constexpr int ACLNN_SUCCESS = 0;
constexpr int ACL_ERROR_BAD_ALLOC = 200000;
constexpr int ACL_ERROR_INTERNAL_ERROR = 500000;
constexpr int ACL_ERROR_FAILURE = 500001;
constexpr int ACL_ERROR_INVALID_PARAM = 100000;

namespace acl_recorder {

inline size_t element_bytes(aclDataType type)
{
    switch (type) {
        case ACL_INT8: case ACL_UINT8: case ACL_BOOL: return 1;
        case ACL_FLOAT16: case ACL_BF16: case ACL_INT16: case ACL_UINT16: return 2;
        case ACL_DOUBLE: case ACL_INT64: case ACL_UINT64: case ACL_COMPLEX64: return 8;
        case ACL_COMPLEX128: return 16;
        default: return 4;
    }
}

inline std::map<const char *, size_t> &allocations()
{
    static std::map<const char *, size_t> all;
    return all;
}

inline size_t bytes_behind(const void *address)
{
    const char *place = static_cast<const char *>(address);
    auto next = allocations().upper_bound(place);
    if (place == nullptr || next == allocations().begin()) {
        return 0;
    }
    --next;
    const size_t offset = place - next->first;
    return offset < next->second ? next->second - offset : 0;
}

}  // namespace acl_recorder

struct aclTensor {
    std::vector<int64_t> shape;
    aclDataType type = ACL_FLOAT;
    bool contiguous = true;
    char *data = nullptr;
    size_t bytes() const
    {
        size_t count = 1;
        for (int64_t extent : shape) {
            count *= extent;
        }
        return count * acl_recorder::element_bytes(type);
    }
};
struct aclTensorList { std::vector<const aclTensor *> items; };
struct aclScalar { aclTensor value; std::vector<char> storage; };
struct aclScalarList { std::vector<const aclScalar *> items; };
struct aclIntArray { std::vector<int64_t> items; };
struct aclFloatArray { std::vector<float> items; };
struct aclBoolArray { std::vector<bool> items; };
struct aclOpExecutor {};

inline aclError aclInit(const char *) { return ACL_SUCCESS; }
inline aclError aclFinalize() { return ACL_SUCCESS; }
inline aclnnStatus aclnnInit(const char *) { return ACL_SUCCESS; }
inline aclnnStatus aclnnFinalize() { return ACL_SUCCESS; }
inline const char *aclrtGetSocName() { return "Ascend910B2"; }
inline aclError aclrtSetDevice(int32_t) { return ACL_SUCCESS; }
inline aclError aclrtResetDevice(int32_t) { return ACL_SUCCESS; }
inline aclError aclrtCreateContext(aclrtContext *context, int32_t) { *context = context; return ACL_SUCCESS; }
inline aclError aclrtSetCurrentContext(aclrtContext) { return ACL_SUCCESS; }
inline aclError aclrtDestroyContext(aclrtContext) { return ACL_SUCCESS; }
inline aclError aclrtCreateStream(aclrtStream *stream) { *stream = stream; return ACL_SUCCESS; }
inline aclError aclrtDestroyStream(aclrtStream) { return ACL_SUCCESS; }
inline aclError aclrtSynchronizeStream(aclrtStream) { return ACL_SUCCESS; }
inline aclError aclrtSynchronizeStreamWithTimeout(aclrtStream, int32_t) { return ACL_SUCCESS; }
inline const char *aclGetRecentErrMsg() { return ""; }

inline aclError aclrtMalloc(void **address, size_t bytes, aclrtMemMallocPolicy)
{
    char *memory = static_cast<char *>(calloc(bytes + 64, 1));
    *address = memory;
    acl_recorder::allocations()[memory] = bytes;
    return memory == nullptr ? ACL_ERROR_BAD_ALLOC : ACL_SUCCESS;
}
inline aclError aclrtMallocHost(void **address, size_t bytes)
{
    return aclrtMalloc(address, bytes, ACL_MEM_MALLOC_NORMAL_ONLY);
}
inline aclError aclrtFree(void *) { return ACL_SUCCESS; }
inline aclError aclrtFreeHost(void *) { return ACL_SUCCESS; }
inline aclError aclrtMemcpy(void *target, size_t capacity, const void *source, size_t bytes, aclrtMemcpyKind kind)
{
    size_t count = std::min(capacity, bytes);
    if (kind == ACL_MEMCPY_HOST_TO_DEVICE) {
        count = std::min(count, acl_recorder::bytes_behind(target));
    } else if (kind == ACL_MEMCPY_DEVICE_TO_HOST) {
        count = std::min(count, acl_recorder::bytes_behind(source));
    }
    memcpy(target, source, count);
    return ACL_SUCCESS;
}
inline aclError aclrtMemset(void *target, size_t capacity, int32_t value, size_t bytes)
{
    memset(target, value, std::min(capacity, bytes));
    return ACL_SUCCESS;
}

inline aclTensor *aclCreateTensor(const int64_t *extents, uint64_t rank, aclDataType type, const int64_t *strides,
                                  int64_t offset, aclFormat, const int64_t *, uint64_t, void *data)
{
    auto *tensor = new aclTensor;
    tensor->shape.assign(extents, extents + rank);
    tensor->type = type;
    tensor->data = static_cast<char *>(data) + offset * static_cast<int64_t>(acl_recorder::element_bytes(type));
    int64_t expected = 1;
    for (int64_t axis = static_cast<int64_t>(rank) - 1; strides != nullptr && axis >= 0; --axis) {
        tensor->contiguous = tensor->contiguous && (extents[axis] == 1 || strides[axis] == expected);
        expected *= extents[axis];
    }
    return tensor;
}
inline aclTensorList *aclCreateTensorList(const aclTensor *const *items, uint64_t count)
{
    return new aclTensorList{{items, items + count}};
}
inline aclScalar *aclCreateScalar(void *value, aclDataType type)
{
    auto *scalar = new aclScalar;
    scalar->storage.assign(static_cast<char *>(value), static_cast<char *>(value) + acl_recorder::element_bytes(type));
    scalar->value.type = type;
    scalar->value.shape = {1};
    scalar->value.data = scalar->storage.data();
    return scalar;
}
inline aclScalarList *aclCreateScalarList(const aclScalar *const *items, uint64_t count)
{
    return new aclScalarList{{items, items + count}};
}
inline aclIntArray *aclCreateIntArray(const int64_t *items, uint64_t count)
{
    return new aclIntArray{{items, items + count}};
}
inline aclFloatArray *aclCreateFloatArray(const float *items, uint64_t count)
{
    return new aclFloatArray{{items, items + count}};
}
inline aclBoolArray *aclCreateBoolArray(const bool *items, uint64_t count)
{
    return new aclBoolArray{{items, items + count}};
}
// Nothing is freed: what a destroyed object described may still be written down.
inline size_t aclDataTypeSize(aclDataType type) { return acl_recorder::element_bytes(type); }
inline aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *) { return ACL_SUCCESS; }
inline aclnnStatus aclDestroyOpExecutor(aclOpExecutor *) { return ACL_SUCCESS; }
inline aclnnStatus aclDestroyTensor(const aclTensor *) { return ACL_SUCCESS; }
inline aclnnStatus aclDestroyTensorList(const aclTensorList *) { return ACL_SUCCESS; }
inline aclnnStatus aclDestroyScalar(const aclScalar *) { return ACL_SUCCESS; }
inline aclnnStatus aclDestroyScalarList(const aclScalarList *) { return ACL_SUCCESS; }
inline aclnnStatus aclDestroyIntArray(const aclIntArray *) { return ACL_SUCCESS; }
inline aclnnStatus aclDestroyFloatArray(const aclFloatArray *) { return ACL_SUCCESS; }
inline aclnnStatus aclDestroyBoolArray(const aclBoolArray *) { return ACL_SUCCESS; }

inline aclFloat16 aclFloatToFloat16(float value)
{
    const _Float16 half = static_cast<_Float16>(value);
    aclFloat16 bits;
    memcpy(&bits, &half, sizeof(bits));
    return bits;
}
inline float aclFloat16ToFloat(aclFloat16 bits)
{
    _Float16 half;
    memcpy(&half, &bits, sizeof(bits));
    return static_cast<float>(half);
}

namespace acl_recorder {

inline std::vector<const aclTensor *> &recorded()
{
    static std::vector<const aclTensor *> tensors;
    return tensors;
}

inline std::string folder()
{
    const char *name = getenv("ASCEND_GYM_RECORD");
    return name == nullptr ? "." : name;
}

inline std::string real(double value, bool single)
{
    if (std::isnan(value) || std::isinf(value)) {
        return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
    }
    char text[64];
    for (int digits = 6; digits <= 17; ++digits) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (single ? strtof(text, nullptr) == static_cast<float>(value) : strtod(text, nullptr) == value) {
            break;
        }
    }
    return text;
}

template <typename Items, typename Write>
std::string listing(const Items &items, Write write)
{
    std::string text;
    for (const auto &item : items) {
        text += (text.empty() ? "" : ", ") + write(item);
    }
    return "[" + text + "]";
}

inline std::string quoted(const char *text)
{
    std::string result = "\"";
    for (; *text != 0; ++text) {
        result += *text == '"' || *text == '\\' ? std::string("\\") + *text : std::string(1, *text);
    }
    return result + "\"";
}

inline std::string tensor_text(const aclTensor *tensor)
{
    if (tensor == nullptr) {
        return "null";
    }
    recorded().push_back(tensor);
    const std::string file = "tensor" + std::to_string(recorded().size()) + ".bin";
    const bool scalar = bytes_behind(tensor->data) == 0 && tensor->bytes() <= 16;
    const size_t bytes = scalar ? tensor->bytes() : std::min(tensor->bytes(), bytes_behind(tensor->data));
    std::ofstream(folder() + "/" + file, std::ios::binary).write(tensor->data, bytes);
    const auto number = [](int64_t extent) { return std::to_string(extent); };
    return "{\"acl_dtype\": " + std::to_string(static_cast<int>(tensor->type)) +
           ", \"shape\": " + listing(tensor->shape, number) +
           ", \"contiguous\": " + (tensor->contiguous ? "true" : "false") + ", \"file\": \"" + file +
           "\", \"number\": " + std::to_string(recorded().size()) + "}";
}

inline std::string entry(const char *kind, const char *field, const std::string &value)
{
    return std::string("{\"kind\": \"") + kind + "\", \"" + field + "\": " + value + "}";
}

inline std::string text(std::nullptr_t) { return "{\"kind\": \"absent\"}"; }
inline std::string text(const aclTensor *tensor)
{
    return tensor == nullptr ? text(nullptr) : entry("tensor", "tensors", "[" + tensor_text(tensor) + "]");
}
inline std::string text(const aclTensorList *list)
{
    return list == nullptr ? text(nullptr) : entry("list", "tensors", listing(list->items, tensor_text));
}
inline std::string text(const aclScalar *scalar)
{
    return scalar == nullptr ? text(nullptr) : entry("scalar", "tensors", "[" + tensor_text(&scalar->value) + "]");
}
inline std::string text(const aclScalarList *list)
{
    const auto write = [](const aclScalar *scalar) { return tensor_text(&scalar->value); };
    return list == nullptr ? text(nullptr) : entry("scalars", "tensors", listing(list->items, write));
}
inline std::string text(const aclIntArray *array)
{
    const auto write = [](int64_t value) { return std::to_string(value); };
    return array == nullptr ? text(nullptr) : entry("ints", "value", listing(array->items, write));
}
inline std::string text(const aclFloatArray *array)
{
    const auto write = [](float value) { return real(value, true); };
    return array == nullptr ? text(nullptr) : entry("floats", "value", listing(array->items, write));
}
inline std::string text(const aclBoolArray *array)
{
    const auto write = [](bool value) { return std::string(value ? "true" : "false"); };
    return array == nullptr ? text(nullptr) : entry("bools", "value", listing(array->items, write));
}
inline std::string text(const char *value)
{
    return value == nullptr ? text(nullptr) : entry("string", "value", quoted(value));
}
inline std::string text(bool value) { return entry("bool", "value", value ? "true" : "false"); }
inline std::string text(float value) { return entry("float", "value", real(value, true)); }
inline std::string text(double value) { return entry("float", "value", real(value, false)); }
template <typename T, typename = std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>>>
std::string text(T value)
{
    return entry("int", "value", std::to_string(static_cast<int64_t>(value)));
}
inline std::string text(uint64_t *workspace_bytes)
{
    *workspace_bytes = 0;
    return "{\"kind\": \"result\"}";
}
inline std::string text(aclOpExecutor **executor)
{
    static aclOpExecutor only;
    *executor = &only;
    return "{\"kind\": \"result\"}";
}

inline bool &done()
{
    static bool once = false;  // one for all calls, whatever the types of their arguments
    return once;
}

template <typename... Arguments>
aclnnStatus record(const char *function, Arguments... arguments)
{
    const std::vector<std::string> entries = {text(arguments)...};
    if (!done()) {
        const auto same = [](const std::string &entry) { return entry; };
        std::ofstream(folder() + "/record.json")
            << "{\"function\": \"" << function << "\", \"arguments\": " << listing(entries, same) << "}\n";
    }
    done() = true;
    return ACL_SUCCESS;
}

inline aclnnStatus mark()
{
    for (size_t index = 0; index < recorded().size(); ++index) {
        const aclTensor *tensor = recorded()[index];
        memset(tensor->data, static_cast<int>(index + 1), std::min(tensor->bytes(), bytes_behind(tensor->data)));
    }
    return ACL_SUCCESS;
}

}  // namespace acl_recorder

#define ACL_RECORDED(name)                                                                   \
    template <typename... Arguments>                                                         \
    aclnnStatus name##GetWorkspaceSize(Arguments... arguments)                               \
    {                                                                                        \
        return acl_recorder::record(#name, arguments...);                                    \
    }                                                                                        \
    inline aclnnStatus name(void *, uint64_t, aclOpExecutor *, aclrtStream) { return acl_recorder::mark(); }
