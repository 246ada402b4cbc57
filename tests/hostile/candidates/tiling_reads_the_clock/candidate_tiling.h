// The tiling program decides by the time of day.
#pragma once
#include <chrono>
#include <cstdint>
#include "honest.h"

struct Plan : HonestPlan {
    static uint32_t TileLength()
    {
        return std::chrono::steady_clock::now().time_since_epoch().count() % 2 ? 512 : 1024;
    }
};
