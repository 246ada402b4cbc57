// AscendC::Std: the part of the C++ library that the device's headers have under a name of their own, and NumericLimits.
#pragma once
#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "asim/api/vector_elementwise.h"

namespace AscendC {

namespace Std {

using std::add_const, std::add_const_t, std::add_cv, std::add_cv_t, std::add_volatile, std::add_volatile_t;
using std::add_lvalue_reference, std::add_lvalue_reference_t, std::add_rvalue_reference, std::add_rvalue_reference_t;
using std::add_pointer, std::add_pointer_t, std::conditional, std::conditional_t, std::enable_if, std::enable_if_t;
using std::integral_constant, std::bool_constant, std::true_type, std::false_type;
using std::is_array, std::is_array_v, std::is_base_of, std::is_base_of_v, std::is_const, std::is_const_v;
using std::is_convertible, std::is_convertible_v, std::is_integral, std::is_integral_v, std::is_pointer, std::is_pointer_v;
using std::is_reference, std::is_reference_v, std::is_same, std::is_same_v, std::is_void, std::is_void_v;
using std::forward, std::get, std::make_tuple, std::tuple, std::tuple_element, std::tuple_size;
using std::remove_const, std::remove_const_t, std::remove_cv, std::remove_cv_t, std::remove_pointer, std::remove_pointer_t;
using std::remove_reference, std::remove_reference_t, std::remove_volatile, std::remove_volatile_t;
using std::index_sequence, std::integer_sequence, std::make_index_sequence, std::make_integer_sequence;

template <size_t v>
using Int = integral_constant<size_t, v>;

// half and bfloat16_t are classes here.
template <typename T>
struct is_floating_point : bool_constant<asim::is_floating<std::remove_cv_t<T>>> {};
template <typename T>
constexpr bool is_floating_point_v = is_floating_point<T>::value;

template <typename T, typename U>
__aicore__ inline constexpr auto max(const T &src0, const U &src1) {
    return src0 < src1 ? src1 : src0;
}
template <typename T, typename U>
__aicore__ inline constexpr auto min(const T &src0, const U &src1) {
    return src1 < src0 ? src1 : src0;
}
template <typename T>
__aicore__ inline T sqrt(const T src) {
    return static_cast<T>(__builtin_sqrtf(static_cast<float>(src)));
}
template <typename T>
__aicore__ inline T abs(const T src) {
    return src < T(0) ? static_cast<T>(-src) : src;
}

}  // namespace Std
}  // namespace AscendC
