// Instantiates templates without an end.
#pragma once
#include "honest.h"

template <int depth, typename T>
struct Twice {
    using A = typename Twice<depth - 1, Twice<depth, T>*>::A;
    using B = typename Twice<depth - 1, Twice<depth, T>&>::B;
};
template <int depth>
struct Endless {
    static constexpr int value = Endless<depth + 1>::value;
};
static_assert(Endless<0>::value == 0);

class Candidate : public HonestKernel {
public:
};
