// Writes behind the output, where the guard lies.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void CopyOut(
        const AscendC::GlobalTensor<float>& yGm, const AscendC::LocalTensor<float>& y, uint32_t offset, uint32_t count)
    {
        AscendC::DataCopy(yGm[offset], y, count);
        AscendC::DataCopy(yGm[offset + 65536 * 4], y, count);
    }
};
