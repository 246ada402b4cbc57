// Helpers for shapes: axes in range, and shapes that are not known when a graph is built.
#pragma once
#include "exe_graph/runtime/shape.h"
#include "graph/types.h"

namespace Ops {
namespace Base {

// Whether `axis` names one of `rank` dimensions, counted from either end; a scalar has axis 0 alone.
template <class Rank, class Axis>
bool CheckAxisBounds(Rank rank, Axis axis) {
    const int64_t extent = static_cast<int64_t>(rank);
    const int64_t place = static_cast<int64_t>(axis);
    return extent == 0 ? place == 0 : place >= -extent && place < extent;
}

inline void SetUnknownRank(gert::Shape &shape) { shape = gert::Shape({ge::UNKNOWN_DIM_NUM}); }
inline bool IsUnknownRank(const gert::Shape &shape) {
    return shape.GetDimNum() == 1 && shape.GetDim(0) == ge::UNKNOWN_DIM_NUM;
}
inline void SetUnknownShape(int64_t rank, gert::Shape &shape) {
    shape.SetDimNum(static_cast<size_t>(rank));
    for (int64_t axis = 0; axis < rank; ++axis) shape.SetDim(static_cast<size_t>(axis), ge::UNKNOWN_DIM);
}
inline bool IsUnknownShape(const gert::Shape &shape) {
    for (size_t axis = 0; axis < shape.GetDimNum(); ++axis) {
        if (shape.GetDim(axis) < 0) return true;
    }
    return false;
}

}  // namespace Base
}  // namespace Ops
