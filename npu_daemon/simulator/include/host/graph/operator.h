// ge::Operator: what graph-level functions (support checks, fusion) look at. Declared so that sources which define such
// functions compile: the simulator runs tiling functions only, and there is no Operator at run time.
#pragma once

#include <string>

#include "graph/ascend_string.h"
#include "graph/ge_error_codes.h"
#include "graph/tensor.h"

namespace ge {

class Operator {
 public:
    Operator() = delete;

    graphStatus GetName(AscendString &) const { return GRAPH_FAILED; }
    TensorDesc GetInputDescByName(const char *) const { return {}; }
    TensorDesc GetInputDesc(uint32_t) const { return {}; }
    TensorDesc GetInputDesc(const char *) const { return {}; }
    TensorDesc GetOutputDesc(uint32_t) const { return {}; }
    TensorDesc GetOutputDescByName(const char *) const { return {}; }
    graphStatus GetInputConstData(const char *, Tensor &) const { return GRAPH_FAILED; }
    template <typename T>
    graphStatus GetAttr(const char *, T &) const {
        return GRAPH_FAILED;
    }
};

}  // namespace ge
