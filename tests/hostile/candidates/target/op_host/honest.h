// What the host side decides: eight cores, equal shares, tiles of a fixed length.
#pragma once
#include <cstdint>

struct HonestPlan {
    static constexpr uint32_t CORES = 8;
    static constexpr uint32_t TILE_LENGTH = 512;

    template <typename Context>
    static void Begin(Context* context)
    {
        (void)context;
    }
    static uint32_t Cores()
    {
        return CORES;
    }
    static uint32_t TileLength()
    {
        return TILE_LENGTH;
    }
    static size_t WorkspaceBytes()
    {
        return 1024;
    }
};
