// gert::Range: the smallest and the largest value of something.
#pragma once

#include "exe_graph/runtime/shape.h"

namespace gert {

template <class T>
class Range {
 public:
    Range() = default;
    Range(T *lowest, T *highest) : lowest_(lowest), highest_(highest) {}

    const T *GetMin() const { return lowest_; }
    const T *GetMax() const { return highest_; }
    T *GetMin() { return lowest_; }
    T *GetMax() { return highest_; }
    void SetMin(T *lowest) { lowest_ = lowest; }
    void SetMax(T *highest) { highest_ = highest; }

 private:
    T *lowest_ = nullptr;
    T *highest_ = nullptr;
};

}  // namespace gert
