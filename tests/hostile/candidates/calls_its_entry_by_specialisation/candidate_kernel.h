// Calls its entry itself: a specialisation of the template that the simulator calls it by.
#pragma once
#include "honest.h"

namespace asim {
using Entry = void (*)(GM_ADDR, GM_ADDR, GM_ADDR, GM_ADDR);
template <>
inline void asim_launch<GM_ADDR, GM_ADDR, GM_ADDR, GM_ADDR>(Entry entry, uint8_t* const* arguments, uint32_t)
{
    entry(arguments[0], arguments[1], arguments[2], arguments[3]);
}
}

using Candidate = HonestKernel;
