// Macros of tiling programs: keys, checks with a return, tables.
#pragma once
#include <cstdint>
#include <string>
#include "honest.h"

#define CONCAT(x, y) x##y
#define DEFINE_KEY(name, value) static constexpr uint64_t CONCAT(KEY_, name) = (value)
#define RETURN_IF(condition, result, ...) \
    if (condition) {                      \
        return (result);                  \
    }
#define TABLE_BEGIN(name) static const struct { const char* key; uint32_t length; } name[] = {
#define ROW(key, length) {#key, length},
#define TABLE_END };

struct Plan : HonestPlan {
    DEFINE_KEY(FLOAT, 10'000UL);
    DEFINE_KEY(HALF, 20'000UL);

    static uint32_t TileLength()
    {
        TABLE_BEGIN(table)
        ROW(small, 128)
        ROW(large, 512)
        TABLE_END
        for (const auto& row : table) {
            RETURN_IF(std::string(row.key) == "large" && KEY_HALF == 2 * KEY_FLOAT, row.length, "found")
        }
        return TILE_LENGTH;
    }
};
