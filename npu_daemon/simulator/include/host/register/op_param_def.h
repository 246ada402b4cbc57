// ops::OpParamDef and ops::OpAttrDef: one parameter or attribute of an operator definition.
#pragma once

#include <cstdint>
#include <initializer_list>
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
    bool shape_depends_on_compute = false;
    std::vector<double> initial_values;
};

// A list as an argument, written in braces or held in a vector. It does not outlive the call.
template <class T>
class ListArgument {
 public:
    ListArgument(std::initializer_list<T> items) : items_(items.begin()), size_(items.size()) {}
    ListArgument(const std::vector<T> &items) : items_(items.data()), size_(items.size()) {}

    const T *begin() const { return items_; }
    const T *end() const { return items_ + size_; }

 private:
    const T *items_;
    size_t size_;
};

// The functions below are defined in the host library: every operator uses them, and none should have to compile them.
class OpParamDef {
 public:
    explicit OpParamDef(const char *name);
    OpParamDef(const OpParamDef &);
    OpParamDef &operator=(const OpParamDef &);
    ~OpParamDef();

    OpParamDef &ParamType(Option kind);
    OpParamDef &DataType(ListArgument<ge::DataType> types);
    OpParamDef &DataTypeList(ListArgument<ge::DataType> types);
    OpParamDef &Format(ListArgument<ge::Format> formats);
    OpParamDef &FormatList(ListArgument<ge::Format> formats);
    OpParamDef &Follow(const char *input, FollowType what = FollowType::ALL);
    OpParamDef &ValueDepend(Option, DependScope = DependScope::ALL);
    OpParamDef &InitValue(uint64_t value);
    OpParamDef &InitValue(const ScalarVar &value);
    OpParamDef &InitValue(const std::vector<ScalarVar> &values);

    // These shape the generated aclnn interface or dynamic-shape graphs; a call with known shapes ignores them.
    OpParamDef &UnknownShapeFormat(ListArgument<ge::Format>) { return *this; }
    OpParamDef &DataTypeForBinQuery(ListArgument<ge::DataType>) { return *this; }
    OpParamDef &FormatForBinQuery(ListArgument<ge::Format>) { return *this; }
    OpParamDef &Scalar() { return *this; }
    OpParamDef &ScalarList() { return *this; }
    OpParamDef &To(ge::DataType) { return *this; }
    OpParamDef &To(const char *) { return *this; }
    OpParamDef &Version(uint32_t) { return *this; }
    OpParamDef &Comment(const char *) { return *this; }
    OpParamDef &AutoContiguous() { return *this; }
    OpParamDef &IgnoreContiguous() { return *this; }
    OpParamDef &OutputShapeDependOnCompute() { return record_.shape_depends_on_compute = true, *this; }

    const ParamRecord &record() const { return record_; }

 private:
    ParamRecord record_;
};

using AttrDefault =
    std::variant<std::monostate, bool, int64_t, float, std::string, std::vector<bool>, std::vector<float>,
                 std::vector<int64_t>, std::vector<std::vector<int64_t>>>;

class OpAttrDef {
 public:
    explicit OpAttrDef(const char *name);
    OpAttrDef(const OpAttrDef &);
    OpAttrDef &operator=(const OpAttrDef &);
    ~OpAttrDef();

    OpAttrDef &AttrType(Option kind);
    OpAttrDef &Bool();
    OpAttrDef &Bool(bool value);
    OpAttrDef &Float();
    OpAttrDef &Float(float value);
    OpAttrDef &Int();
    OpAttrDef &Int(int64_t value);
    OpAttrDef &String();
    OpAttrDef &String(const char *value);
    OpAttrDef &ListBool();
    OpAttrDef &ListBool(std::vector<bool> value);
    OpAttrDef &ListFloat();
    OpAttrDef &ListFloat(ListArgument<float> value);
    OpAttrDef &ListInt();
    OpAttrDef &ListInt(ListArgument<int64_t> value);
    OpAttrDef &ListListInt();
    OpAttrDef &ListListInt(std::vector<std::vector<int64_t>> value);
    OpAttrDef &Version(uint32_t) { return *this; }
    OpAttrDef &Comment(const char *) { return *this; }

    ge::AscendString GetName() const;
    bool IsRequired() const { return required_; }
    const std::string &name() const { return name_; }
    const std::string &type() const { return type_; }
    const AttrDefault &default_value() const { return default_; }

 private:
    OpAttrDef &set(const char *type, AttrDefault value);

    std::string name_;
    std::string type_ = "int";
    bool required_ = true;
    AttrDefault default_;
};

}  // namespace ops
