// OP_ADD: make an operator definition known.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/operator.h"
#include "register/op_def.h"
#include "register/tilingdata_base.h"

// What may follow names the operator's compile info, which its tiling parse function makes.
#define OP_ADD(op_type, ...)                                                   \
    [[maybe_unused]] static const bool g_definition_##op_type##_registered = \
        ::asim::host::register_definition(#op_type, op_type(#op_type))
