// Writes over a queue and goes on with it.
#pragma once
#include "honest.h"

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        volatile uint8_t* bytes = reinterpret_cast<volatile uint8_t*>(&queue);
        for (uint32_t i = 0; i < sizeof(queue); i++) {
            bytes[i] = 0xff;
        }
        AscendC::LocalTensor<float> taken = queue.AllocTensor<float>();
        queue.EnQue(taken);
    }

private:
    AscendC::TQue<AscendC::QuePosition::VECIN, 2> queue;
};
