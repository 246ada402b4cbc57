// Shapes, strides and coordinates as tuples, what they mean in memory, and the trait of a tensor that carries them.
#pragma once
#include "asim/api/standard_types.h"

namespace AscendC {

template <typename... Extents>
using Shape = Std::tuple<Extents...>;
template <typename... Extents>
using Stride = Std::tuple<Extents...>;
template <typename... Extents>
using Coord = Std::tuple<Extents...>;

template <typename... Extents>
__aicore__ inline constexpr Shape<Extents...> MakeShape(const Extents &...extents) {
    return {extents...};
}
template <typename... Extents>
__aicore__ inline constexpr Stride<Extents...> MakeStride(const Extents &...extents) {
    return {extents...};
}
template <typename... Extents>
__aicore__ inline constexpr Coord<Extents...> MakeCoord(const Extents &...extents) {
    return {extents...};
}

namespace layouts {

template <typename T>
constexpr bool is_tuple = false;
template <typename... Ts>
constexpr bool is_tuple<std::tuple<Ts...>> = true;

template <typename T>
constexpr size_t number(const T &value) {
    return static_cast<size_t>(value);
}

template <typename Coordinate, typename Extents, typename Strides>
constexpr size_t index_of(const Coordinate &coordinate, const Extents &shape, const Strides &stride);

// A coordinate for each extent.
template <typename Coordinate, typename Extents, typename Strides, size_t... axes>
constexpr size_t sum_of_axes(const Coordinate &coordinate, const Extents &shape, const Strides &stride, std::index_sequence<axes...>) {
    return (size_t{0} + ... + index_of(std::get<axes>(coordinate), std::get<axes>(shape), std::get<axes>(stride)));
}

// One number for all extents, the first of which counts fastest; the last takes what is left.
template <size_t axis, typename Extents, typename Strides>
constexpr size_t spread(size_t left, const Extents &shape, const Strides &stride) {
    if constexpr (axis + 1 == std::tuple_size_v<Extents>) {
        return index_of(left, std::get<axis>(shape), std::get<axis>(stride));
    } else {
        const size_t extent = number(std::get<axis>(shape));
        return index_of(left % extent, std::get<axis>(shape), std::get<axis>(stride)) + spread<axis + 1>(left / extent, shape, stride);
    }
}

template <typename Coordinate, typename Extents, typename Strides>
constexpr size_t index_of(const Coordinate &coordinate, const Extents &shape, const Strides &stride) {
    if constexpr (is_tuple<Coordinate>) {
        static_assert(is_tuple<Extents> && std::tuple_size_v<Coordinate> == std::tuple_size_v<Extents>,
                      "Crd2Idx: a coordinate has as many numbers as its shape, or is one number");
        static_assert(std::tuple_size_v<Extents> == std::tuple_size_v<Strides>, "Crd2Idx: each extent has a stride");
        return sum_of_axes(coordinate, shape, stride, std::make_index_sequence<std::tuple_size_v<Coordinate>>{});
    } else if constexpr (is_tuple<Extents>) {
        static_assert(std::tuple_size_v<Extents> == std::tuple_size_v<Strides>, "Crd2Idx: each extent has a stride");
        return spread<0>(number(coordinate), shape, stride);
    } else {
        return number(coordinate) * number(stride);
    }
}

}  // namespace layouts

template <typename ShapeType, typename StrideType>
struct Layout {
    static_assert(layouts::is_tuple<ShapeType> && layouts::is_tuple<StrideType>, "shape and stride of a Layout are tuples");

    __aicore__ inline constexpr Layout(const ShapeType &shape = {}, const StrideType &stride = {}) : shape_(shape), stride_(stride) {}

    __aicore__ inline constexpr decltype(auto) layout() { return *this; }
    __aicore__ inline constexpr decltype(auto) layout() const { return *this; }
    __aicore__ inline constexpr ShapeType &GetShape() { return shape_; }
    __aicore__ inline constexpr const ShapeType &GetShape() const { return shape_; }
    __aicore__ inline constexpr StrideType &GetStride() { return stride_; }
    __aicore__ inline constexpr const StrideType &GetStride() const { return stride_; }
    template <typename Coordinate>
    __aicore__ inline constexpr auto operator()(const Coordinate &coordinate) const {
        return layouts::index_of(coordinate, shape_, stride_);
    }

private:
    ShapeType shape_;
    StrideType stride_;
};

template <typename T>
struct is_layout : Std::false_type {};
template <typename ShapeType, typename StrideType>
struct is_layout<Layout<ShapeType, StrideType>> : Std::true_type {};
template <typename T>
constexpr bool is_layout_v = is_layout<T>::value;

template <typename ShapeType, typename StrideType>
__aicore__ inline constexpr auto MakeLayout(const ShapeType &shape, const StrideType &stride) {
    return Layout<ShapeType, StrideType>(shape, stride);
}

template <typename CoordType, typename ShapeType, typename StrideType>
__aicore__ inline constexpr auto Crd2Idx(const CoordType &coord, const Layout<ShapeType, StrideType> &layout) {
    return layouts::index_of(coord, layout.GetShape(), layout.GetStride());
}
template <typename CoordType, typename ShapeType, typename StrideType>
__aicore__ inline constexpr auto Crd2Idx(const CoordType &coord, const ShapeType &shape, const StrideType &stride) {
    return layouts::index_of(coord, shape, stride);
}

// An element type with where it lies and how. Tensors of a trait are not simulated: calls take tensors of elements.
template <typename T, TPosition pos = TPosition::GM, typename LayoutType = Layout<Shape<>, Stride<>>>
struct TensorTrait {
    static_assert(asim::is_element<T>, "the element of a TensorTrait is a number of up to eight bytes");
    static_assert(is_layout_v<LayoutType>, "the layout of a TensorTrait is a Layout");
    using LiteType = T;
    using LiteLayoutType = LayoutType;
    static constexpr TPosition tPos = pos;

    __aicore__ inline TensorTrait(const LayoutType &layout = {}) : layout_(layout) {}
    __aicore__ inline LayoutType &GetLayout() { return layout_; }
    __aicore__ inline const LayoutType &GetLayout() const { return layout_; }
    __aicore__ inline auto &GetShape() { return layout_.GetShape(); }
    __aicore__ inline const auto &GetShape() const { return layout_.GetShape(); }
    __aicore__ inline auto &GetStride() { return layout_.GetStride(); }
    __aicore__ inline const auto &GetStride() const { return layout_.GetStride(); }
    __aicore__ inline void SetLayout(const LayoutType &layout) { layout_ = layout; }

private:
    LayoutType layout_;
};

template <typename T, TPosition pos, typename LayoutType>
__aicore__ inline constexpr auto MakeTensorTrait(const LayoutType &layout) {
    return TensorTrait<T, pos, LayoutType>(layout);
}

}  // namespace AscendC
