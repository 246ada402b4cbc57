// Lets a template of Ascend C call the inside: as what the tensor has in the place of a method.
#pragma once
#include "honest.h"

struct Odd {};
namespace AscendC {
template <>
class LocalTensor<Odd> {
public:
    using PrimType = uint32_t;
    static constexpr auto& GetValue = asim::merged_count;
};
}

class Candidate : public HonestKernel {
public:
    __aicore__ inline void Begin(const Places& places)
    {
        const AscendC::ElementReference<AscendC::LocalTensor<Odd>, uint32_t> merged({}, places.coreLength);
        if (static_cast<uint32_t>(merged) == 1) AscendC::PipeBarrier<PIPE_ALL>();
    }
};
