// LocalTensor and GlobalTensor: typed views of unified buffer and global memory.
#pragma once
#include "asim/api/language.h"
#include "asim/api/shape_info.h"
#include "asim/machine/scalar_memory.h"
#include "asim/semantics/vector.h"

namespace asim {

// Element types of Ascend C: numbers of up to eight bytes.
template <typename T>
constexpr bool is_element = (std::is_arithmetic_v<T> && sizeof(T) <= sizeof(uint64_t)) || is_floating<std::remove_cv_t<T>> ||
                            std::is_same_v<std::remove_cv_t<T>, int4b_t>;

template <size_t bytes>
using Unsigned = std::conditional_t<bytes == 1, uint8_t,
                                    std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;

template <typename T>
uint64_t bits_of_element(T value) {
    return __builtin_bit_cast(Unsigned<sizeof(T)>, value);
}
template <typename T>
std::remove_cv_t<T> element_of_bits(uint64_t bits) {
    return __builtin_bit_cast(std::remove_cv_t<T>, static_cast<Unsigned<sizeof(T)>>(bits));
}

}  // namespace asim

namespace AscendC {

using TTagType = int32_t;

// The memory that a position lies in; on Atlas A2 results for the vector cores (CO2) pass through global memory.
constexpr asim::Space space_of(TPosition position) {
    switch (position) {
        case TPosition::GM: return asim::Space::Gm;
        case TPosition::A1:
        case TPosition::B1:
        case TPosition::C1:
        case TPosition::TSCM: return asim::Space::L1;
        case TPosition::A2: return asim::Space::L0A;
        case TPosition::B2: return asim::Space::L0B;
        case TPosition::CO1: return asim::Space::L0C;
        case TPosition::C2: return asim::Space::BiasTable;
        case TPosition::C2PIPE2GM: return asim::Space::FixpipeBuffer;
        default: return asim::Space::Ub;
    }
}

// An element of a tensor as `tensor(index)` names it: reads and writes go through the scalar unit.
template <typename Tensor, typename Index>
class ElementReference {
public:
    using Element = typename Tensor::PrimType;

    ElementReference(const Tensor &tensor, Index index) : tensor_(tensor), index_(index) {}
    ElementReference(const ElementReference &) = default;

    operator Element() const { return tensor_.GetValue(index_); }
    const ElementReference &operator=(const ElementReference &other) const { return *this = static_cast<Element>(other); }
    template <typename U>
    const ElementReference &operator=(U value) const {
        tensor_.SetValue(index_, static_cast<Element>(value));
        return *this;
    }

    // One read and one write each.
    template <typename U>
    const ElementReference &operator+=(U value) const { return *this = read() + value; }
    template <typename U>
    const ElementReference &operator-=(U value) const { return *this = read() - value; }
    template <typename U>
    const ElementReference &operator*=(U value) const { return *this = read() * value; }
    template <typename U>
    const ElementReference &operator/=(U value) const { return *this = read() / value; }
    template <typename U>
    const ElementReference &operator%=(U value) const { return *this = read() % value; }
    template <typename U>
    const ElementReference &operator&=(U value) const { return *this = read() & value; }
    template <typename U>
    const ElementReference &operator|=(U value) const { return *this = read() | value; }
    template <typename U>
    const ElementReference &operator^=(U value) const { return *this = read() ^ value; }
    template <typename U>
    const ElementReference &operator<<=(U value) const { return *this = read() << value; }
    template <typename U>
    const ElementReference &operator>>=(U value) const { return *this = read() >> value; }
    const ElementReference &operator++() const { return *this += Element(1); }
    const ElementReference &operator--() const { return *this -= Element(1); }
    Element operator++(int) const { return advanced_by(Element(1)); }
    Element operator--(int) const { return advanced_by(Element(-1)); }

private:
    Element read() const { return tensor_.GetValue(index_); }

    // Returns what the element was.
    Element advanced_by(Element step) const {
        const Element before = read();
        *this = before + step;
        return before;
    }

    Tensor tensor_;
    Index index_;
};

template <typename T>
class LocalTensor {
    static_assert(asim::is_element<T>, "the elements of a LocalTensor are numbers of up to eight bytes");

public:
    using PrimType = T;

    LocalTensor() = default;
    LocalTensor(uint8_t *base, uint64_t bytes, TPosition position)
        : base_(base), size_elems_(static_cast<uint32_t>(bytes / sizeof(T))), position_(position) {}
    // Without a TPipe: `size_elems` elements from byte `address` of the memory of that position on.
    LocalTensor(TPosition position, uint32_t address, uint32_t size_elems)
        : base_(asim::local_memory(space_of(position)) + address), size_elems_(size_elems), position_(position) {}

    // Runs the instruction that an expression of tensors stands for.
    template <typename Expression, typename = typename Expression::TensorExpression>
    const LocalTensor &operator=(const Expression &expression) const {
        expression.store(*this);
        return *this;
    }

    T GetValue(uint32_t index) const { return asim::element_of_bits<T>(asim::load_ub(element(index), sizeof(T))); }
    ElementReference<LocalTensor, uint32_t> operator()(uint32_t index) const { return {*this, index}; }

    template <typename U>
    void SetValue(uint32_t index, U value) const {
        asim::store_ub(element(index), asim::bits_of_element(static_cast<T>(value)), sizeof(T));
    }

    LocalTensor operator[](uint32_t offset) const {
        LocalTensor shifted = *this;
        shifted.base_ += static_cast<uint64_t>(offset) * sizeof(T);
        shifted.size_elems_ = size_elems_ > offset ? size_elems_ - offset : 0;
        return shifted;
    }

    template <typename U>
    LocalTensor<U> ReinterpretCast() const {
        return LocalTensor<U>(base_, static_cast<uint64_t>(size_elems_) * sizeof(T), position_);
    }

    uint32_t GetSize() const { return size_elems_; }
    void SetSize(uint32_t size_elems) { size_elems_ = size_elems; }
    uint32_t GetLength() const { return size_elems_ * sizeof(T); }
    void SetShapeInfo(const ShapeInfo &shape) const { asim::note_shape(base_, shape); }
    ShapeInfo GetShapeInfo() const {
        ShapeInfo shape;
        asim::noted_shape(base_, &shape);
        return shape;
    }
    void SetBufferLen(uint32_t size_elems) { SetSize(size_elems); }
    // Becomes the part of another tensor from element `offset` on.
    template <typename S>
    void SetAddrWithOffset(LocalTensor<S> &src, uint32_t offset) {
        base_ = src.bytes() + static_cast<uint64_t>(offset) * sizeof(S);
        size_elems_ = src.GetSize() > offset ? static_cast<uint32_t>((src.GetSize() - offset) * sizeof(S) / sizeof(T)) : 0;
        position_ = src.GetPosition();
    }
    // Of the library's own records of addresses, which simulated tensors do not have.
    template <typename Address>
    void SetAddr(const Address &) {
        static_assert(sizeof(Address) == 0, "SetAddr takes what only the library's own tensors hold: use SetAddrWithOffset");
    }
    TPosition GetPosition() const { return position_; }
    // A number of the kernel's own for what begins there.
    void SetUserTag(const TTagType tag) const { asim::note_tag(base_, tag); }
    TTagType GetUserTag() const { return asim::noted_tag(base_); }
    // A number, as the page has it: what is added to it counts bytes; `offset` counts elements.
    uint64_t GetPhyAddr() const { return reinterpret_cast<uint64_t>(base_); }
    uint64_t GetPhyAddr(uint32_t offset) const { return GetPhyAddr() + uint64_t{offset} * sizeof(T); }

    uint8_t *bytes() const { return base_; }

private:
    uint8_t *element(uint32_t index) const { return base_ + static_cast<uint64_t>(index) * sizeof(T); }

    uint8_t *base_ = nullptr;
    uint32_t size_elems_ = 0;
    TPosition position_ = TPosition::VECCALC;
};

template <typename T>
class GlobalTensor {
    static_assert(asim::is_element<T>, "the elements of a GlobalTensor are numbers of up to eight bytes");

public:
    using PrimType = T;

    void SetGlobalBuffer(T *buffer, uint64_t size_elems) {
        base_ = buffer;
        size_elems_ = size_elems;
    }
    void SetGlobalBuffer(T *buffer) { SetGlobalBuffer(buffer, 0); }

    T GetValue(uint64_t index) const { return asim::element_of_bits<T>(asim::load_gm(element(index), sizeof(T))); }
    ElementReference<GlobalTensor, uint64_t> operator()(uint64_t index) const { return {*this, index}; }
    void SetValue(uint64_t index, T value) const {
        asim::store_gm(element(index), asim::bits_of_element(value), sizeof(T));
    }

    GlobalTensor operator[](uint64_t offset) const {
        GlobalTensor shifted = *this;
        shifted.base_ += std::is_same_v<std::remove_cv_t<T>, int4b_t> ? offset / 2 : offset;  // two of them share a byte
        shifted.size_elems_ = size_elems_ > offset ? size_elems_ - offset : 0;
        return shifted;
    }

    uint64_t GetSize() const { return size_elems_; }
    const T *GetPhyAddr() const { return base_; }
    T *GetPhyAddr(uint64_t offset) const { return base_ + offset; }
    template <CacheRwMode rw = CacheRwMode::RW>
    void SetL2CacheHint(CacheMode mode) {
        const bool bypass = mode == CacheMode::CACHE_MODE_DISABLE;
        if (rw != CacheRwMode::WRITE) reads_bypass_l2_ = bypass;
        if (rw != CacheRwMode::READ) writes_bypass_l2_ = bypass;
    }

    uint8_t *bytes() const { return (uint8_t *)base_; }     // whatever qualifiers T has
    bool reads_bypass_l2() const { return reads_bypass_l2_; }
    bool writes_bypass_l2() const { return writes_bypass_l2_; }

private:
    void *element(uint64_t index) const { return bytes() + index * sizeof(T); }

    T *base_ = nullptr;
    uint64_t size_elems_ = 0;
    bool reads_bypass_l2_ = false;
    bool writes_bypass_l2_ = false;
};

}  // namespace AscendC

namespace asim {

template <typename T>
Lanes linear(const AscendC::LocalTensor<T> &tensor) {
    return {tensor.bytes(), 1, 8};
}

template <typename T>
Lanes strided(const AscendC::LocalTensor<T> &tensor, uint32_t block_stride, uint32_t repeat_stride) {
    return {tensor.bytes(), block_stride, repeat_stride};
}

}  // namespace asim
