// Has the simulator note ever more shapes, of tensors that need not exist.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        const uint32_t extents[] = {1, count};
        for (AscendC::LocalTensor<float> tensor = x;; tensor = tensor[8]) {
            tensor.SetShapeInfo(AscendC::ShapeInfo(2, extents, AscendC::DataFormat::ND));
        }
    }
};
