// Where host code leaves its operator definitions, tiling functions and tiling structures when it is loaded.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "asim/host/tiling_fields.h"

namespace gert {
class InferShapeContext;
class TilingContext;
class TilingParseContext;
}  // namespace gert

namespace ops {
class OpDef;
}  // namespace ops

namespace asim::host {

using TilingFunction = uint32_t (*)(gert::TilingContext *);
using TilingParseFunction = uint32_t (*)(gert::TilingParseContext *);
using InferShapeFunction = uint32_t (*)(gert::InferShapeContext *);
using TilingDataFactory = std::unique_ptr<optiling::TilingDef> (*)();

template <class Structure>
std::unique_ptr<optiling::TilingDef> make_tiling_data() {
    return std::make_unique<Structure>();
}

// How the operator's own CompileInfo is made and destroyed.
struct CompileInfoType {
    void *(*make)();
    void (*destroy)(void *);
};

// What was registered by name for one operator type, apart from its definition.
struct Implementation {
    TilingFunction tiling = nullptr;
    TilingParseFunction tiling_parse = nullptr;
    InferShapeFunction infer_shape = nullptr;
    CompileInfoType compile_info = {nullptr, nullptr};
    std::set<size_t> value_dependent_inputs;
};

struct Registry {
    std::map<std::string, std::shared_ptr<const ops::OpDef>> definitions;
    std::map<std::string, Implementation> implementations;
    std::map<std::string, TilingDataFactory> tiling_data;
};

Registry &registry();
bool register_definition(const char *op_type, const ops::OpDef &definition);
bool register_tiling_data(const char *key, TilingDataFactory factory);

}  // namespace asim::host
