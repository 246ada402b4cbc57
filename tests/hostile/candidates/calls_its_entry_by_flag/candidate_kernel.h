// Calls its entry itself, under the name that a flag gives to the simulator's function.
#pragma once
#include "honest.h"

namespace asim {
template <typename Entry>
inline void own(Entry entry, uint8_t* const* arguments, uint32_t)
{
    entry(arguments[0], arguments[1], arguments[2], arguments[3]);
}
}

using Candidate = HonestKernel;
