// What host functions of recorded sessions (device_sessions.py) use of PyTorch, for programs of the simulator: tensors as a
// shape, a type and device memory; conditions; launches by EXEC_KERNEL_CMD. Nothing is computed here: whatever of
// PyTorch runs a kernel of its own (conversions, padding, transposed copies) is missing on purpose, so that a
// host function that needs it does not compile and is not taken for one that was run.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "acl/acl.h"

namespace c10 {

enum class ScalarType { Byte, Char, Short, Int, Long, Half, Float, Double, Bool, BFloat16 };

struct OfType {
    const char *name;
    int64_t bytes;
};

constexpr OfType kTypes[] = {{"uint8", 1}, {"int8", 1}, {"int16", 2}, {"int32", 4}, {"int64", 8}, {"float16", 2},
                             {"float32", 4}, {"float64", 8}, {"bool", 1}, {"bfloat16", 2}};

inline const OfType &of_type(ScalarType type) { return kTypes[static_cast<size_t>(type)]; }
inline int64_t elementSize(ScalarType type) { return of_type(type).bytes; }
inline std::ostream &operator<<(std::ostream &out, ScalarType type) { return out << of_type(type).name; }

// Prints what the host function refuses and ends the program.
template <typename... Words>
[[noreturn]] void refuse(const Words &...words) {
    (std::cerr << ... << words) << std::endl;
    std::exit(3);
}

// It owns what it lists.
template <typename T>
class ArrayRef {
public:
    ArrayRef() = default;
    ArrayRef(std::vector<T> values) : values_(std::move(values)) {}
    ArrayRef(std::initializer_list<T> values) : values_(values) {}
    size_t size() const { return values_.size(); }
    bool empty() const { return values_.empty(); }
    const T *data() const { return values_.data(); }
    const T &operator[](size_t i) const { return values_.at(i); }
    const T &at(size_t i) const { return values_.at(i); }
    const T &front() const { return values_.front(); }
    const T &back() const { return values_.back(); }
    auto begin() const { return values_.begin(); }
    auto end() const { return values_.end(); }
    std::vector<T> vec() const { return values_; }
    bool equals(const ArrayRef &other) const { return values_ == other.values_; }
    bool operator==(const ArrayRef &other) const { return values_ == other.values_; }
    bool operator!=(const ArrayRef &other) const { return values_ != other.values_; }

private:
    std::vector<T> values_;
};

using IntArrayRef = ArrayRef<int64_t>;

template <typename T>
std::ostream &operator<<(std::ostream &out, const ArrayRef<T> &values) {
    for (const T &value : values) out << value << ' ';
    return out;
}

class Scalar {
public:
    Scalar(double value = 0) : value_(value) {}
    template <typename T>
    T to() const { return static_cast<T>(value_); }
    double toDouble() const { return value_; }
    float toFloat() const { return static_cast<float>(value_); }
    int64_t toLong() const { return static_cast<int64_t>(value_); }
    int toInt() const { return static_cast<int>(value_); }
    bool toBool() const { return value_ != 0; }

private:
    double value_;
};

struct Device {};

struct TensorOptions {
    ScalarType type = ScalarType::Float;
    TensorOptions() = default;
    TensorOptions(ScalarType of) : type(of) {}
    TensorOptions dtype(ScalarType of) const { return TensorOptions(of); }
    TensorOptions device(const Device &) const { return *this; }
};

using std::nullopt;
using std::optional;
using string_view = std::string_view;

}  // namespace c10

namespace at {

using c10::ArrayRef;
using c10::Device;
using c10::IntArrayRef;
using c10::optional;
using c10::Scalar;
using c10::ScalarType;
using c10::TensorOptions;

constexpr ScalarType kByte = ScalarType::Byte, kChar = ScalarType::Char, kShort = ScalarType::Short, kInt = ScalarType::Int,
                     kLong = ScalarType::Long, kHalf = ScalarType::Half, kFloat = ScalarType::Float,
                     kDouble = ScalarType::Double, kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16;

// Contiguous, in device memory that is freed with the program.
class Tensor {
public:
    Tensor() = default;
    Tensor(std::vector<int64_t> shape, ScalarType type, uint8_t *memory) : shape_(std::move(shape)), type_(type), memory_(memory), defined_(true) {}

    bool defined() const { return defined_; }
    IntArrayRef sizes() const { return shape_; }
    int64_t dim() const { return static_cast<int64_t>(shape_.size()); }
    int64_t ndimension() const { return dim(); }
    int64_t size(int64_t axis) const { return shape_.at(static_cast<size_t>(axis < 0 ? axis + dim() : axis)); }
    int64_t numel() const { return std::accumulate(shape_.begin(), shape_.end(), int64_t{1}, std::multiplies<>()); }
    ScalarType scalar_type() const { return type_; }
    ScalarType dtype() const { return type_; }
    int64_t element_size() const { return c10::elementSize(type_); }
    int64_t itemsize() const { return element_size(); }
    size_t nbytes() const { return static_cast<size_t>(numel() * element_size()); }
    TensorOptions options() const { return TensorOptions(type_); }
    Device device() const { return {}; }
    bool is_contiguous() const { return true; }
    const Tensor &contiguous() const { return *this; }
    IntArrayRef strides() const {
        std::vector<int64_t> strides(shape_.size(), 1);
        for (size_t i = shape_.size(); i-- > 1;) strides[i - 1] = strides[i] * shape_[i];
        return strides;
    }
    int64_t stride(int64_t axis) const { return strides().at(static_cast<size_t>(axis < 0 ? axis + dim() : axis)); }

    void *data_ptr() const { return memory_; }
    template <typename T>
    T *data_ptr() const { return reinterpret_cast<T *>(memory_); }

    Tensor reshape(const IntArrayRef &shape) const {
        std::vector<int64_t> resolved = shape.vec();
        int64_t known = 1, *open = nullptr;
        for (int64_t &extent : resolved) extent < 0 ? void(open = &extent) : void(known *= extent);
        if (open != nullptr) *open = known == 0 ? 0 : numel() / known;
        const Tensor result(resolved, type_, memory_);
        if (result.numel() != numel()) c10::refuse("a reshape from ", numel(), " to ", result.numel(), " elements");
        return result;
    }
    Tensor view(const IntArrayRef &shape) const { return reshape(shape); }
    Tensor view_as(const Tensor &other) const { return reshape(other.sizes()); }
    Tensor reshape_as(const Tensor &other) const { return reshape(other.sizes()); }
    Tensor flatten() const { return reshape({numel()}); }
    Tensor unsqueeze(int64_t axis) const {
        std::vector<int64_t> shape = shape_;
        shape.insert(shape.begin() + (axis < 0 ? axis + dim() + 1 : axis), 1);
        return reshape(shape);
    }
    Tensor squeeze(int64_t axis) const {
        std::vector<int64_t> shape = shape_;
        const int64_t at = axis < 0 ? axis + dim() : axis;
        if (size(at) == 1) shape.erase(shape.begin() + at);
        return reshape(shape);
    }

private:
    std::vector<int64_t> shape_;
    ScalarType type_ = ScalarType::Float;
    uint8_t *memory_ = nullptr;
    bool defined_ = false;
};

using TensorList = ArrayRef<Tensor>;

inline Tensor empty(const IntArrayRef &shape, const TensorOptions &options = {}) {
    const Tensor shaped(shape.vec(), options.type, nullptr);
    void *memory = nullptr;
    aclrtMalloc(&memory, shaped.nbytes() + 32, ACL_MEM_MALLOC_HUGE_FIRST);
    return Tensor(shape.vec(), options.type, static_cast<uint8_t *>(memory));
}
inline Tensor empty_like(const Tensor &like) { return empty(like.sizes(), like.options()); }
inline Tensor empty_like(const Tensor &like, const TensorOptions &options) { return empty(like.sizes(), options); }

// The device writes these zeros by a kernel of PyTorch, which is not priced here.
inline Tensor zeros(const IntArrayRef &shape, const TensorOptions &options = {}) {
    const Tensor made = empty(shape, options);
    aclrtMemset(made.data_ptr(), made.nbytes(), 0, made.nbytes());
    return made;
}
inline Tensor zeros_like(const Tensor &like) { return zeros(like.sizes(), like.options()); }
inline Tensor zeros_like(const Tensor &like, const TensorOptions &options) { return zeros(like.sizes(), options); }

inline TensorOptions device(const Device &) { return {}; }
inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }

}  // namespace at

namespace torch {
using namespace at;
constexpr ScalarType kUInt8 = kByte, kInt8 = kChar, kInt16 = kShort, kInt32 = kInt, kInt64 = kLong, kFloat16 = kHalf,
                     kFloat32 = kFloat, kFloat64 = kDouble;
}  // namespace torch

namespace c10_npu {
struct Stream {
    aclrtStream stream(bool = true) const { return nullptr; }
};
inline Stream getCurrentNPUStream() { return {}; }
}  // namespace c10_npu

#define TORCH_CHECK(condition, ...) \
    do { if (!(condition)) c10::refuse(#condition ": ", ##__VA_ARGS__); } while (0)
#define AT_ERROR(...) c10::refuse(__VA_ARGS__)

// The program that includes this defines a template session_launch_KERNEL for each kernel, with its <<<>>>.
#define EXEC_KERNEL_CMD(kernel, block_dim, ...) session_launch_##kernel(block_dim, __VA_ARGS__)

namespace session {

inline uint8_t *argument(const at::Tensor &tensor) { return static_cast<uint8_t *>(tensor.data_ptr()); }
template <typename T>
uint8_t *argument(T *pointer) { return reinterpret_cast<uint8_t *>(const_cast<std::remove_const_t<T> *>(pointer)); }
template <typename T, typename = std::enable_if_t<!std::is_pointer_v<T>>>
T argument(const T &value) { return value; }

inline std::vector<std::string> parts(const std::string &word, char between) {
    std::vector<std::string> found;
    for (size_t from = 0; from <= word.size();) {
        const size_t to = std::min(word.find(between, from), word.size());
        if (to > from) found.push_back(word.substr(from, to - from));
        from = to + 1;
    }
    return found;
}

inline std::vector<int64_t> integers(const std::string &word, char between) {
    std::vector<int64_t> found;
    for (const std::string &part : parts(word, between)) found.push_back(std::atoll(part.c_str()));
    return found;
}

// TYPE:EXTENTxEXTENT:FILE; a scalar has no extent.
inline at::Tensor tensor(const std::string &word) {
    const size_t first = word.find(':'), last = word.rfind(':');
    if (first == last) c10::refuse("expected TYPE:SHAPE:FILE, not ", word);
    size_t type = 0;
    while (type < std::size(c10::kTypes) && word.substr(0, first) != c10::kTypes[type].name) ++type;
    if (type == std::size(c10::kTypes)) c10::refuse("unknown type in ", word);
    const at::Tensor made = at::empty(integers(word.substr(first + 1, last - first - 1), 'x'), static_cast<c10::ScalarType>(type));
    std::vector<char> values(made.nbytes());
    FILE *file = std::fopen(word.substr(last + 1).c_str(), "rb");
    if (file == nullptr || std::fread(values.data(), 1, values.size(), file) != values.size()) c10::refuse("cannot read ", word);
    std::fclose(file);
    aclrtMemcpy(made.data_ptr(), values.size(), values.data(), values.size(), ACL_MEMCPY_HOST_TO_DEVICE);
    return made;
}

template <typename T>
struct Parameter {      // numbers and truth values
    static T of(const std::string &word) { return static_cast<T>(std::atof(word.c_str())); }
};
template <>
struct Parameter<int64_t> {
    static int64_t of(const std::string &word) { return std::atoll(word.c_str()); }
};
template <>
struct Parameter<at::Tensor> {
    static at::Tensor of(const std::string &word) { return tensor(word); }
};
template <>
struct Parameter<at::TensorList> {
    static at::TensorList of(const std::string &word) {
        std::vector<at::Tensor> made;
        for (const std::string &part : parts(word, ';')) made.push_back(tensor(part));
        return made;
    }
};
template <>
struct Parameter<at::IntArrayRef> {
    static at::IntArrayRef of(const std::string &word) { return integers(word, ','); }
};
template <typename T>
struct Parameter<std::optional<T>> {
    static std::optional<T> of(const std::string &word) { return word == "none" ? std::nullopt : std::optional<T>(Parameter<T>::of(word)); }
};
template <>
struct Parameter<std::string> {
    static std::string of(const std::string &word) { return word; }
};
template <>
struct Parameter<std::string_view> {
    static std::string_view of(const std::string &word) { return word; }
};

inline void write(const at::Tensor &tensor, int &number) {
    std::vector<char> values(tensor.nbytes());
    aclrtMemcpy(values.data(), values.size(), tensor.data_ptr(), values.size(), ACL_MEMCPY_DEVICE_TO_HOST);
    const std::string name = "y" + std::to_string(number++) + ".bin";
    FILE *file = std::fopen(name.c_str(), "wb");
    if (file == nullptr || std::fwrite(values.data(), 1, values.size(), file) != values.size()) c10::refuse("cannot write ", name);
    std::fclose(file);
    std::cout << "output " << name << ' ' << tensor.scalar_type() << ' ' << tensor.sizes() << std::endl;
}
inline void write(const std::vector<at::Tensor> &tensors, int &number) {
    for (const at::Tensor &tensor : tensors) write(tensor, number);
}
template <typename... Tensors>
void write(const std::tuple<Tensors...> &tensors, int &number) {
    std::apply([&](const auto &...each) { (write(each, number), ...); }, tensors);
}

template <typename T>
void write_argument(const T &value, int &number) {
    if constexpr (std::is_same_v<T, at::Tensor>) write(value, number);
}

constexpr int kCalls = 2;       // the second finds its code loaded, as one in a row of launches does

// Calls the host function with the words behind its name, and writes what the last call returned to y0.bin, y1.bin ...
template <typename Result, typename... Parameters, size_t... places>
int call(Result (*function)(Parameters...), const std::vector<std::string> &words, std::index_sequence<places...>) {
    if (words.size() != sizeof...(Parameters)) c10::refuse("expected ", sizeof...(Parameters), " arguments, not ", words.size());
    std::tuple<std::decay_t<Parameters>...> values{Parameter<std::decay_t<Parameters>>::of(words[places])...};
    int written = 0;
    for (int i = 0; i < kCalls; ++i) {
        if constexpr (std::is_void_v<Result>) {     // it wrote to its arguments
            std::apply(function, values);
            if (i + 1 == kCalls) std::apply([&](const auto &...each) { (write_argument(each, written), ...); }, values);
        } else {
            const std::decay_t<Result> result = std::apply(function, values);
            if (i + 1 == kCalls) write(result, written);
        }
    }
    return 0;
}

template <typename Result, typename... Parameters>
int call(Result (*function)(Parameters...), int argc, char **argv) {
    return call(function, std::vector<std::string>(argv + 2, argv + argc), std::index_sequence_for<Parameters...>());
}

}  // namespace session
