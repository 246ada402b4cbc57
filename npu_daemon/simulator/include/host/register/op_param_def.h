// ops::OpParamDef and ops::OpAttrDef: one parameter or attribute of an operator definition.
#pragma once

#include <deque>
#include <string>
#include <variant>
#include <vector>

#include "graph/types.h"

namespace ops {

enum Option { IGNORE = 0, OPTIONAL = 1, REQUIRED = 2, DYNAMIC = 3, VIRTUAL = 4 };
enum class DependScope : uint32_t { ALL = 0, TILING = 1, INVALID_SCOPE };
enum class FollowType : uint32_t { ALL = 0, DTYPE = 1, FORMAT = 2, SHAPE = 3, INVALID_TYPE };

enum class ScalarType : uint32_t {
    UINT64 = 0,
    INT64 = 1,
    UINT32 = 2,
    INT32 = 3,
    UINT16 = 4,
    INT16 = 5,
    UINT8 = 6,
    INT8 = 7,
    FLOAT32 = 8,
    FLOAT16 = 9,
    INVALID_DTYPE = static_cast<uint32_t>(-1)
};

// A number that an output is filled with before the kernel starts.
struct ScalarVar {
    ScalarVar() = default;
    template <class Number>
    ScalarVar(ScalarType type, Number number) : scalar_type(type), value(static_cast<double>(number)) {}

    ScalarType scalar_type = ScalarType::INVALID_DTYPE;
    double value = 0;
};

struct ParamRecord {
    std::string name;
    Option kind = REQUIRED;
    std::vector<ge::DataType> types;
    std::vector<ge::Format> formats;
    bool types_combine = false;    // DataTypeList: every type goes with every column of the others
    bool formats_combine = false;  // FormatList: likewise for layouts
    std::string follows_type_of;
    std::string follows_format_of;
    bool value_dependent = false;
    std::vector<double> initial_values;
};

class OpParamDef {
 public:
    explicit OpParamDef(const char *name) { record_.name = name; }

    OpParamDef &ParamType(Option kind) { return record_.kind = kind, *this; }
    OpParamDef &DataType(std::vector<ge::DataType> types) { return record_.types = std::move(types), *this; }
    OpParamDef &DataTypeList(std::vector<ge::DataType> types) {
        record_.types_combine = true;
        return DataType(std::move(types));
    }
    OpParamDef &Format(std::vector<ge::Format> formats) { return record_.formats = std::move(formats), *this; }
    OpParamDef &FormatList(std::vector<ge::Format> formats) {
        record_.formats_combine = true;
        return Format(std::move(formats));
    }
    OpParamDef &Follow(const char *input, FollowType what = FollowType::ALL) {
        if (what == FollowType::ALL || what == FollowType::DTYPE) record_.follows_type_of = input;
        if (what == FollowType::ALL || what == FollowType::FORMAT) record_.follows_format_of = input;
        return *this;
    }
    OpParamDef &ValueDepend(Option) { return record_.value_dependent = true, *this; }
    OpParamDef &ValueDepend(Option, DependScope) { return record_.value_dependent = true, *this; }
    OpParamDef &InitValue(uint64_t value) { return record_.initial_values = {static_cast<double>(value)}, *this; }
    OpParamDef &InitValue(const ScalarVar &value) { return record_.initial_values = {value.value}, *this; }
    OpParamDef &InitValue(const std::vector<ScalarVar> &values) {
        record_.initial_values.clear();
        for (const ScalarVar &value : values) record_.initial_values.push_back(value.value);
        return *this;
    }

    // These shape the generated aclnn interface or dynamic-shape graphs; a call with known shapes ignores them.
    OpParamDef &UnknownShapeFormat(std::vector<ge::Format>) { return *this; }
    OpParamDef &DataTypeForBinQuery(std::vector<ge::DataType>) { return *this; }
    OpParamDef &FormatForBinQuery(std::vector<ge::Format>) { return *this; }
    OpParamDef &Scalar() { return *this; }
    OpParamDef &ScalarList() { return *this; }
    OpParamDef &To(ge::DataType) { return *this; }
    OpParamDef &To(const char *) { return *this; }
    OpParamDef &Version(uint32_t) { return *this; }
    OpParamDef &Comment(const char *) { return *this; }
    OpParamDef &AutoContiguous() { return *this; }
    OpParamDef &IgnoreContiguous() { return *this; }
    OpParamDef &OutputShapeDependOnCompute() { return *this; }

    const ParamRecord &record() const { return record_; }

 private:
    ParamRecord record_;
};

using AttrDefault =
    std::variant<std::monostate, bool, int64_t, float, std::string, std::vector<bool>, std::vector<float>,
                 std::vector<int64_t>, std::vector<std::vector<int64_t>>>;

class OpAttrDef {
 public:
    explicit OpAttrDef(const char *name) : name_(name) {}

    OpAttrDef &AttrType(Option kind) { return required_ = kind == REQUIRED, *this; }
    OpAttrDef &Bool() { return set("bool", {}); }
    OpAttrDef &Bool(bool value) { return set("bool", value); }
    OpAttrDef &Float() { return set("float", {}); }
    OpAttrDef &Float(float value) { return set("float", value); }
    OpAttrDef &Int() { return set("int", {}); }
    OpAttrDef &Int(int64_t value) { return set("int", value); }
    OpAttrDef &String() { return set("string", {}); }
    OpAttrDef &String(const char *value) { return set("string", std::string(value)); }
    OpAttrDef &ListBool() { return set("list_bool", {}); }
    OpAttrDef &ListBool(std::vector<bool> value) { return set("list_bool", std::move(value)); }
    OpAttrDef &ListFloat() { return set("list_float", {}); }
    OpAttrDef &ListFloat(std::vector<float> value) { return set("list_float", std::move(value)); }
    OpAttrDef &ListInt() { return set("list_int", {}); }
    OpAttrDef &ListInt(std::vector<int64_t> value) { return set("list_int", std::move(value)); }
    OpAttrDef &ListListInt() { return set("list_list_int", {}); }
    OpAttrDef &ListListInt(std::vector<std::vector<int64_t>> value) { return set("list_list_int", std::move(value)); }
    OpAttrDef &Version(uint32_t) { return *this; }
    OpAttrDef &Comment(const char *) { return *this; }

    ge::AscendString GetName() const { return name_.c_str(); }
    bool IsRequired() const { return required_; }
    const std::string &name() const { return name_; }
    const std::string &type() const { return type_; }
    const AttrDefault &default_value() const { return default_; }

 private:
    OpAttrDef &set(const char *type, AttrDefault value) {
        type_ = type;
        default_ = std::move(value);
        return *this;
    }

    std::string name_;
    std::string type_ = "int";
    bool required_ = true;
    AttrDefault default_;
};

inline const std::string &name_of(const OpParamDef &parameter) { return parameter.record().name; }
inline const std::string &name_of(const OpAttrDef &attribute) { return attribute.name(); }

// The item called `name`, appended when there is none yet. References stay valid while items are added.
template <class Item>
Item &find_or_add(std::deque<Item> &items, const char *name) {
    for (Item &item : items) {
        if (name_of(item) == name) return item;
    }
    return items.emplace_back(name);
}

}  // namespace ops
