// Status codes of graph-level functions: what a tiling function returns.
#pragma once

#include <cstdint>

namespace ge {

using graphStatus = uint32_t;
using Status = uint32_t;

constexpr graphStatus GRAPH_SUCCESS = 0;
constexpr graphStatus GRAPH_FAILED = 0xFFFFFFFF;
constexpr graphStatus GRAPH_NOT_CHANGED = 1343242304;
constexpr graphStatus GRAPH_PARAM_INVALID = 50331649;
constexpr graphStatus GRAPH_PARAM_OUT_OF_RANGE = 50331650;
constexpr Status SUCCESS = GRAPH_SUCCESS;
constexpr Status FAILED = GRAPH_FAILED;

}  // namespace ge
