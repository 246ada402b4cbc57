// Where host code leaves its operator definitions, tiling functions and tiling structures when it is loaded.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "asim/host/tiling_fields.h"

namespace gert {
class TilingContext;
class TilingParseContext;
}  // namespace gert

namespace ops {
class OpDef;
}  // namespace ops

namespace asim::host {

using TilingFunction = uint32_t (*)(gert::TilingContext *);
using TilingDataFactory = std::shared_ptr<optiling::TilingDef> (*)();

// What was registered by name for one operator type, apart from its definition.
struct Implementation {
    TilingFunction tiling = nullptr;
    std::function<uint32_t(gert::TilingParseContext *)> tiling_parse;
    std::function<std::shared_ptr<void>()> make_compile_info;
    std::set<size_t> value_dependent_inputs;
};

struct Registry {
    std::map<std::string, std::shared_ptr<const ops::OpDef>> definitions;
    std::map<std::string, Implementation> implementations;
    std::map<std::string, TilingDataFactory> tiling_data;
};

Registry &registry();
bool register_definition(const char *op_type, std::shared_ptr<const ops::OpDef> definition);
bool register_tiling_data(const char *key, TilingDataFactory factory);

}  // namespace asim::host
