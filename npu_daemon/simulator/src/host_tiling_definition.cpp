// What host code registers when it is loaded: operator definitions, tiling functions, tiling structures.
#include "asim/host/registry.h"
#include "register/op_def.h"

namespace asim::host {

Registry &registry() {
    static Registry instance;
    return instance;
}

bool register_definition(const char *op_type, const ops::OpDef &definition) {
    registry().definitions[op_type] = std::make_shared<const ops::OpDef>(definition);
    return true;
}

bool register_tiling_data(const char *key, TilingDataFactory factory) {
    registry().tiling_data[key] = factory;
    return true;
}

}  // namespace asim::host

namespace gert {

OpImplRegisterV2::OpImplRegisterV2(const char *op_type)
    : implementation_(&asim::host::registry().implementations[op_type]) {}

OpImplRegisterV2 &OpImplRegisterV2::Tiling(TilingKernelFunc function) {
    implementation_->tiling = function;
    return *this;
}

OpImplRegisterV2 &OpImplRegisterV2::InferShape(InferShapeKernelFunc function) {
    implementation_->infer_shape = function;
    return *this;
}

OpImplRegisterV2 &OpImplRegisterV2::TilingInputsDataDependency(std::initializer_list<int32_t> inputs) {
    implementation_->value_dependent_inputs.insert(inputs.begin(), inputs.end());
    return *this;
}

OpImplRegisterV2 &OpImplRegisterV2::parse_with(TilingParseFunc function, asim::host::CompileInfoType type) {
    implementation_->tiling_parse = function;
    implementation_->compile_info = type;
    return *this;
}

}  // namespace gert

namespace ops {

namespace {

const std::string &name_of(const OpParamDef &parameter) { return parameter.record().name; }
const std::string &name_of(const OpAttrDef &attribute) { return attribute.name(); }

// The item called `name`, appended when there is none yet. References stay valid while items are added.
template <class Item>
Item &find_or_add(std::deque<Item> &items, const char *name) {
    for (Item &item : items) {
        if (name_of(item) == name) return item;
    }
    return items.emplace_back(name);
}

}  // namespace

OpParamDef::OpParamDef(const char *name) { record_.name = name; }
OpParamDef::OpParamDef(const OpParamDef &) = default;
OpParamDef &OpParamDef::operator=(const OpParamDef &) = default;
OpParamDef::~OpParamDef() = default;

OpParamDef &OpParamDef::ParamType(Option kind) { return record_.kind = kind, *this; }

OpParamDef &OpParamDef::DataType(ListArgument<ge::DataType> types) {
    record_.types.assign(types.begin(), types.end());
    return *this;
}

OpParamDef &OpParamDef::DataTypeList(ListArgument<ge::DataType> types) {
    record_.types_combine = true;
    return DataType(types);
}

OpParamDef &OpParamDef::Format(ListArgument<ge::Format> formats) {
    record_.formats.assign(formats.begin(), formats.end());
    return *this;
}

OpParamDef &OpParamDef::FormatList(ListArgument<ge::Format> formats) {
    record_.formats_combine = true;
    return Format(formats);
}

OpParamDef &OpParamDef::Follow(const char *input, FollowType what) {
    if (what == FollowType::ALL || what == FollowType::DTYPE) record_.follows_type_of = input;
    if (what == FollowType::ALL || what == FollowType::FORMAT) record_.follows_format_of = input;
    return *this;
}

OpParamDef &OpParamDef::ValueDepend(Option, DependScope) { return record_.value_dependent = true, *this; }

OpParamDef &OpParamDef::InitValue(uint64_t value) {
    record_.initial_values = {static_cast<double>(value)};
    return *this;
}

OpParamDef &OpParamDef::InitValue(const ScalarVar &value) { return record_.initial_values = {value.value}, *this; }

OpParamDef &OpParamDef::InitValue(const std::vector<ScalarVar> &values) {
    record_.initial_values.clear();
    for (const ScalarVar &value : values) record_.initial_values.push_back(value.value);
    return *this;
}

OpAttrDef::OpAttrDef(const char *name) : name_(name) {}
OpAttrDef::OpAttrDef(const OpAttrDef &) = default;
OpAttrDef &OpAttrDef::operator=(const OpAttrDef &) = default;
OpAttrDef::~OpAttrDef() = default;

OpAttrDef &OpAttrDef::set(const char *type, AttrDefault value) {
    type_ = type;
    default_ = std::move(value);
    return *this;
}

OpAttrDef &OpAttrDef::AttrType(Option kind) { return required_ = kind == REQUIRED, *this; }
OpAttrDef &OpAttrDef::Bool() { return set("bool", {}); }
OpAttrDef &OpAttrDef::Bool(bool value) { return set("bool", value); }
OpAttrDef &OpAttrDef::Float() { return set("float", {}); }
OpAttrDef &OpAttrDef::Float(float value) { return set("float", value); }
OpAttrDef &OpAttrDef::Int() { return set("int", {}); }
OpAttrDef &OpAttrDef::Int(int64_t value) { return set("int", value); }
OpAttrDef &OpAttrDef::String() { return set("string", {}); }
OpAttrDef &OpAttrDef::String(const char *value) { return set("string", std::string(value)); }
OpAttrDef &OpAttrDef::ListBool() { return set("list_bool", {}); }
OpAttrDef &OpAttrDef::ListBool(std::vector<bool> value) { return set("list_bool", std::move(value)); }
OpAttrDef &OpAttrDef::ListFloat() { return set("list_float", {}); }
OpAttrDef &OpAttrDef::ListFloat(ListArgument<float> value) {
    return set("list_float", std::vector<float>(value.begin(), value.end()));
}
OpAttrDef &OpAttrDef::ListInt() { return set("list_int", {}); }
OpAttrDef &OpAttrDef::ListInt(ListArgument<int64_t> value) {
    return set("list_int", std::vector<int64_t>(value.begin(), value.end()));
}
OpAttrDef &OpAttrDef::ListListInt() { return set("list_list_int", {}); }
OpAttrDef &OpAttrDef::ListListInt(std::vector<std::vector<int64_t>> value) {
    return set("list_list_int", std::move(value));
}
ge::AscendString OpAttrDef::GetName() const { return name_.c_str(); }

OpAICoreConfig::OpAICoreConfig() = default;
OpAICoreConfig::OpAICoreConfig(const char *) {}
OpAICoreConfig::OpAICoreConfig(const OpAICoreConfig &) = default;
OpAICoreConfig &OpAICoreConfig::operator=(const OpAICoreConfig &) = default;
OpAICoreConfig::~OpAICoreConfig() = default;
OpParamDef &OpAICoreConfig::Input(const char *name) { return find_or_add(inputs_, name); }
OpParamDef &OpAICoreConfig::Output(const char *name) { return find_or_add(outputs_, name); }

OpAICoreDef &OpAICoreDef::AddConfig(const char *chip) { return configs_[chip] = OpAICoreConfig(), *this; }
OpAICoreDef &OpAICoreDef::AddConfig(const char *chip, OpAICoreConfig &config) { return configs_[chip] = config, *this; }

OpDef::OpDef(const char *type) : type_(type) {}
OpDef::OpDef(const OpDef &) = default;
OpDef &OpDef::operator=(const OpDef &) = default;
OpDef::~OpDef() = default;
OpParamDef &OpDef::Input(const char *name) { return find_or_add(inputs_, name); }
OpParamDef &OpDef::Output(const char *name) { return find_or_add(outputs_, name); }
OpAttrDef &OpDef::Attr(const char *name) { return find_or_add(attributes_, name); }

}  // namespace ops
