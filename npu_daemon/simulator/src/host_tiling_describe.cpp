// The registered operator as JSON.
#include "asim/host/describe.h"

#include <algorithm>
#include <cctype>
#include <type_traits>

#include "asim/host/fault.h"
#include "asim/host/json.h"
#include "asim/host/registry.h"
#include "graph/utils/type_utils.h"

namespace asim::host {
namespace {

const char *kind_name(ops::Option kind) {
    switch (kind) {
        case ops::OPTIONAL:
            return "optional";
        case ops::DYNAMIC:
            return "dynamic";
        default:
            return "required";
    }
}

std::string type_name(ge::DataType type) { return json::text(ge::TypeUtils::DataTypeToSerialString(type)); }

std::string format_name(ge::Format format) { return json::text(ge::TypeUtils::FormatToSerialString(format)); }

std::string describe_parameter(const ops::ParamRecord &record, bool value_dependent) {
    return json::object({
        {"name", json::text(record.name)},
        {"kind", json::text(kind_name(record.kind))},
        {"types", json::array(record.types, type_name)},
        {"formats", json::array(record.formats, format_name)},
        {"types_combine", json::boolean(record.types_combine)},
        {"formats_combine", json::boolean(record.formats_combine)},
        {"follows_type_of", json::text(record.follows_type_of)},
        {"follows_format_of", json::text(record.follows_format_of)},
        {"value_dependent", json::boolean(value_dependent)},
        {"shape_depends_on_compute", json::boolean(record.shape_depends_on_compute)},
        {"initial_values", json::array(record.initial_values, json::real)},
    });
}

// Parameters of the definition, each replaced by the chip's own version of it where there is one.
std::vector<const ops::ParamRecord *> merged(const std::deque<ops::OpParamDef> &common,
                                             const std::deque<ops::OpParamDef> &of_chip) {
    std::vector<const ops::ParamRecord *> records;
    for (const ops::OpParamDef &parameter : common) records.push_back(&parameter.record());
    for (const ops::OpParamDef &parameter : of_chip) {
        const ops::ParamRecord &record = parameter.record();
        const auto same_name = [&record](const ops::ParamRecord *other) { return other->name == record.name; };
        const auto found = std::find_if(records.begin(), records.end(), same_name);
        if (found == records.end()) {
            records.push_back(&record);
        } else {
            *found = &record;
        }
    }
    return records;
}

std::string describe_parameters(const std::vector<const ops::ParamRecord *> &records,
                                const std::set<size_t> &dependent) {
    size_t index = 0;
    return json::array(records, [&](const ops::ParamRecord *record) {
        return describe_parameter(*record, record->value_dependent || dependent.count(index++) != 0);
    });
}

struct DefaultEncoder {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool value) const { return json::boolean(value); }
    std::string operator()(int64_t value) const { return std::to_string(value); }
    std::string operator()(float value) const { return json::real(value); }
    std::string operator()(const std::string &value) const { return json::text(value); }
    template <class T>
    std::string operator()(const std::vector<T> &values) const {
        return json::array(values, [this](const T &value) { return (*this)(value); });
    }
};

std::string describe_attribute(const ops::OpAttrDef &attribute) {
    return json::object({
        {"name", json::text(attribute.name())},
        {"type", json::text(attribute.type())},
        {"required", json::boolean(attribute.IsRequired())},
        {"default", std::visit(DefaultEncoder(), attribute.default_value())},
    });
}

std::string describe_struct(const optiling::TilingDef &structure);

std::string describe_field(const optiling::TilingDef &owner, const optiling::TilingFieldInfo &field) {
    return json::object({
        {"name", json::text(field.name)},
        {"type", json::text(field.type)},
        {"offset", std::to_string(field.offset)},
        {"bytes", std::to_string(field.bytes)},
        {"array_length", std::to_string(field.array_length)},
        {"structure", field.nested ? describe_struct(owner.nested(field)) : "null"},
    });
}

std::string describe_struct(const optiling::TilingDef &structure) {
    const auto encode = [&structure](const optiling::TilingFieldInfo &field) {
        return describe_field(structure, field);
    };
    return json::object({
        {"name", json::text(structure.GetTilingClassName())},
        {"bytes", std::to_string(structure.GetDataSize())},
        {"fields", json::array(structure.fields(), encode)},
    });
}

bool is_number(const std::string &text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Structures registered for the operator: "Add" is the default one, "Add_7" that of tiling key 7.
std::string describe_structures(const std::string &op_type) {
    std::string body;
    for (const auto &[key, factory] : registry().tiling_data) {
        const bool of_key = key.rfind(op_type + "_", 0) == 0 && is_number(key.substr(op_type.size() + 1));
        if (key != op_type && !of_key) continue;
        body += std::string(body.empty() ? "" : ",") +
                json::object({
                    {"tiling_key", of_key ? key.substr(op_type.size() + 1) : "null"},
                    {"structure", describe_struct(*factory())},
                });
    }
    return "[" + body + "]";
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

template <class Map>
std::string keys_of(const Map &items) {
    std::string names;
    for (const auto &item : items) names += (names.empty() ? "" : ", ") + item.first;
    return names.empty() ? "none" : names;
}

const ops::OpAICoreConfig &config_of(const ops::OpDef &definition, const std::string &soc_version) {
    fe::PlatFormInfos chip;
    chip.soc_version = soc_version;
    const auto &configs = definition.ai_core().configs();
    const auto found = configs.find(lower(chip.short_soc_version()));
    if (found != configs.end()) return found->second;
    throw HostFault("operator " + definition.type() + " is not defined for " + lower(chip.short_soc_version()) +
                    "; its AICore().AddConfig calls name: " + keys_of(configs));
}

}  // namespace

const ops::OpDef &find_definition(const std::string &op_type) {
    const auto &definitions = registry().definitions;
    if (op_type == "-" && definitions.size() == 1) return *definitions.begin()->second;
    const auto found = definitions.find(op_type);
    if (found != definitions.end()) return *found->second;
    const std::string wanted = op_type == "-" ? "exactly one operator" : "operator " + op_type;
    throw HostFault("expected " + wanted + " to be registered with OP_ADD; registered: " + keys_of(definitions));
}

std::string describe(const ops::OpDef &definition, const std::string &soc_version) {
    const ops::OpAICoreConfig &config = config_of(definition, soc_version);
    const std::set<size_t> &dependent = registry().implementations[definition.type()].value_dependent_inputs;
    return json::object({
        {"op_type", json::text(definition.type())},
        {"inputs", describe_parameters(merged(definition.inputs(), config.inputs()), dependent)},
        {"outputs", describe_parameters(merged(definition.outputs(), config.outputs()), {})},
        {"attributes", json::array(definition.attributes(), describe_attribute)},
        {"structures", describe_structures(definition.type())},
    });
}

}  // namespace asim::host
