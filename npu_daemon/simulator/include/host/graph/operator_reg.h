// Prototypes of operators for graphs (REG_OP(...).INPUT(...)...OP_END_FACTORY_REG(...)), which some tiling headers include. A launch is
// no graph: they are read and describe nothing.
#pragma once
#include "graph/operator.h"

namespace ge {

struct asim_Prototype {
    asim_Prototype &asim_part() { return *this; }
};

}  // namespace ge

#define REG_OP(type)                 \
    namespace asim_prototype_##type { \
    [[maybe_unused]] static inline void describe() { ::ge::asim_Prototype()
#define INPUT(...) asim_part()
#define OPTIONAL_INPUT(...) asim_part()
#define DYNAMIC_INPUT(...) asim_part()
#define OUTPUT(...) asim_part()
#define DYNAMIC_OUTPUT(...) asim_part()
#define ATTR(...) asim_part()
#define REQUIRED_ATTR(...) asim_part()
#define GRAPH(...) asim_part()
#define DYNAMIC_GRAPH(...) asim_part()
#define DATATYPE(...) asim_part()
#define OP_END_FACTORY_REG(type) \
    asim_part();                 \
    }                            \
    }
