// Makes ever more queues, whose buffers take no room.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Compute(
        const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& x, uint32_t offset, uint32_t count)
    {
        for (;;) {
            AscendC::TQue<AscendC::QuePosition::VECCALC, 1> queue;
            GetTPipePtr()->InitBuffer(queue, 16, 0);
        }
    }
};
