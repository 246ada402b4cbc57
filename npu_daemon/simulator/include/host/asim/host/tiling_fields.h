// Storage behind the structures that host code declares with BEGIN_TILING_DATA_DEF.
//
// Fields live in one byte buffer at the offsets the kernel sees: natural alignment, nested structures on
// eight bytes, the whole a multiple of eight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace optiling {

class TilingDef;

// One field: `type` is the C++ type of an element, or the name of a nested structure.
struct TilingFieldInfo {
    std::string type;
    std::string name;
    size_t offset = 0;
    size_t bytes = 0;
    size_t array_length = 0;  // 0 for a plain field
    bool nested = false;
    std::ptrdiff_t member_distance = 0;  // from the owner to the nested structure
};

class TilingDef {
 public:
    explicit TilingDef(const char *name);
    TilingDef(const TilingDef &);
    TilingDef &operator=(const TilingDef &);
    virtual ~TilingDef();

    const char *GetTilingClassName() const { return name_.c_str(); }
    // Bytes of the whole structure as the kernel sees it.
    size_t GetDataSize() const;
    // Write the structure to `buffer`; throws HostFault when it does not fit in `capacity` bytes.
    void SaveToBuffer(void *buffer, size_t capacity) const;

    // From now on fields are kept at `data`, which has room for the whole structure, nested ones included.
    void SetDataPtr(void *data);

    const std::vector<TilingFieldInfo> &fields() const { return fields_; }
    const TilingDef &nested(const TilingFieldInfo &field) const;

    size_t add_field(const char *type, const char *name, size_t element_bytes, size_t array_length);
    size_t add_nested(const char *name, const TilingDef &member);

 protected:
    template <class T>
    T read(size_t offset) const {
        T value;
        std::memcpy(&value, data() + offset, sizeof(T));
        return value;
    }
    template <class T>
    void write(size_t offset, T value) {
        std::memcpy(const_cast<uint8_t *>(data()) + offset, &value, sizeof(T));
    }
    template <class T>
    T *elements(size_t offset) const {
        return reinterpret_cast<T *>(const_cast<uint8_t *>(data()) + offset);
    }

 private:
    size_t append(TilingFieldInfo field, size_t alignment);
    const uint8_t *data() const { return elsewhere_ != nullptr ? elsewhere_ : bytes_.data(); }

    std::string name_;
    std::vector<TilingFieldInfo> fields_;
    std::vector<uint8_t> bytes_;
    uint8_t *elsewhere_ = nullptr;
};

// The name under which the kernel declares an element of type T.
template <class T>
constexpr const char *tiling_type_name() {
    static_assert(std::is_arithmetic_v<T>, "a tiling field must be a whole number, bool, float or double");
    if constexpr (std::is_same_v<T, bool>) return "bool";
    if constexpr (std::is_same_v<T, float>) return "float";
    if constexpr (std::is_same_v<T, double>) return "double";
    constexpr const char *kSigned[] = {"", "int8_t", "int16_t", "", "int32_t", "", "", "", "int64_t"};
    constexpr const char *kUnsigned[] = {"", "uint8_t", "uint16_t", "", "uint32_t", "", "", "", "uint64_t"};
    return std::is_signed_v<T> ? kSigned[sizeof(T)] : kUnsigned[sizeof(T)];
}

// Declares itself to its owner and remembers the offset it got; survives copying of the owner.
template <class T>
struct TilingField {
    TilingField(TilingDef &owner, const char *name, size_t array_length = 0)
        : offset(owner.add_field(tiling_type_name<T>(), name, sizeof(T), array_length)) {}
    size_t offset;
};

struct NestedTilingField {
    NestedTilingField(TilingDef &owner, const char *name, const TilingDef &member)
        : offset(owner.add_nested(name, member)) {}
    size_t offset;
};

}  // namespace optiling

namespace asim::host {

// A structure as the kernel has it, instead of one with setters.
template <class T>
constexpr bool is_plain = std::is_trivially_copyable_v<T> && !std::is_base_of_v<optiling::TilingDef, T>;

}  // namespace asim::host
