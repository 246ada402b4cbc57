// The tiling program decides by chance.
#pragma once
#include <cstdint>
#include <random>
#include "honest.h"

struct Plan : HonestPlan {
    static uint32_t TileLength()
    {
        return std::random_device{}() % 2 ? 512 : 1024;
    }
};
