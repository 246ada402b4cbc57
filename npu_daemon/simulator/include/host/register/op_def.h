// ops::OpDef: the definition of an operator, read by the simulator after the host library is loaded.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "register/op_impl_registry.h"
#include "register/op_param_def.h"

namespace ge {
class Operator;  // graph/operator.h
}  // namespace ge

namespace optiling {
using OP_CHECK_FUNC = ge::graphStatus (*)(const ge::Operator &, ge::AscendString &);
using PARAM_GENERALIZE_FUNC = ge::graphStatus (*)(const ge::Operator &, const ge::AscendString &, ge::AscendString &);
}  // namespace optiling

namespace ops {

enum class CommentSection : uint32_t { BRIEF = 0, CONSTRAINTS = 1, RESTRICTIONS = 2, SEE = 3, THIRDPARTYFWKCOMPAT = 4 };
enum class FormatCheckOption : uint32_t { DEFAULT = 0, STRICT = 1 };
enum class HcclServerType : uint32_t { AICPU = 0, AICORE = 1, CCU = 2, MAX };

// What one chip changes about the definition: parameters given here replace those of the same name.
class OpAICoreConfig {
 public:
    OpAICoreConfig();
    explicit OpAICoreConfig(const char *);
    OpAICoreConfig(const OpAICoreConfig &);
    OpAICoreConfig &operator=(const OpAICoreConfig &);
    ~OpAICoreConfig();

    OpParamDef &Input(const char *name);
    OpParamDef &Output(const char *name);
    const std::deque<OpParamDef> &inputs() const { return inputs_; }
    const std::deque<OpParamDef> &outputs() const { return outputs_; }

    // Switches of graph compilation; a single call with known shapes ignores them.
    OpAICoreConfig &DynamicCompileStaticFlag(bool) { return *this; }
    OpAICoreConfig &DynamicFormatFlag(bool) { return *this; }
    OpAICoreConfig &DynamicRankSupportFlag(bool) { return *this; }
    OpAICoreConfig &DynamicShapeSupportFlag(bool) { return *this; }
    OpAICoreConfig &NeedCheckSupportFlag(bool) { return *this; }
    OpAICoreConfig &PrecisionReduceFlag(bool) { return *this; }
    OpAICoreConfig &ExtendCfgInfo(const char *, const char *) { return *this; }

 private:
    std::deque<OpParamDef> inputs_;
    std::deque<OpParamDef> outputs_;
};

class OpAICoreDef {
 public:
    OpAICoreDef &SetTiling(gert::OpImplRegisterV2::TilingKernelFunc function) { return tiling_ = function, *this; }
    OpAICoreDef &AddConfig(const char *chip);
    OpAICoreDef &AddConfig(const char *chip, OpAICoreConfig &config);

    // Hooks of graph compilation, which the simulator does not do.
    OpAICoreDef &SetCheckSupport(optiling::OP_CHECK_FUNC) { return *this; }
    OpAICoreDef &SetOpSelectFormat(optiling::OP_CHECK_FUNC) { return *this; }
    OpAICoreDef &SetOpSupportInfo(optiling::OP_CHECK_FUNC) { return *this; }
    OpAICoreDef &SetOpSpecInfo(optiling::OP_CHECK_FUNC) { return *this; }
    OpAICoreDef &SetParamGeneralize(optiling::PARAM_GENERALIZE_FUNC) { return *this; }

    gert::OpImplRegisterV2::TilingKernelFunc tiling() const { return tiling_; }
    const std::map<std::string, OpAICoreConfig> &configs() const { return configs_; }

 private:
    gert::OpImplRegisterV2::TilingKernelFunc tiling_ = nullptr;
    std::map<std::string, OpAICoreConfig> configs_;
};

// Communication groups of fused communication operators; one simulated chip has none.
class OpMC2Def {
 public:
    OpMC2Def &HcclGroup(const char *) { return *this; }
    OpMC2Def &HcclGroup(std::vector<const char *>) { return *this; }
    void HcclServerType(enum HcclServerType, const char * = nullptr) {}
};

class OpDef {
 public:
    explicit OpDef(const char *type);
    OpDef(const OpDef &);
    OpDef &operator=(const OpDef &);
    ~OpDef();

    OpParamDef &Input(const char *name);
    OpParamDef &Output(const char *name);
    OpAttrDef &Attr(const char *name);
    OpAICoreDef &AICore() { return ai_core_; }
    OpMC2Def &MC2() { return mc2_; }

    OpDef &SetInferShape(gert::OpImplRegisterV2::InferShapeKernelFunc) { return *this; }
    OpDef &SetInferShapeRange(gert::OpImplRegisterV2::InferShapeRangeKernelFunc) { return *this; }
    OpDef &SetInferDataType(gert::OpImplRegisterV2::InferDataTypeKernelFunc) { return *this; }
    OpDef &Comment(CommentSection, const char *) { return *this; }
    OpDef &EnableFallBack() { return *this; }
    OpDef &FormatMatchMode(FormatCheckOption) { return *this; }

    const std::string &type() const { return type_; }
    const std::deque<OpParamDef> &inputs() const { return inputs_; }
    const std::deque<OpParamDef> &outputs() const { return outputs_; }
    const std::deque<OpAttrDef> &attributes() const { return attributes_; }
    const OpAICoreDef &ai_core() const { return ai_core_; }

 private:
    std::string type_;
    std::deque<OpParamDef> inputs_;
    std::deque<OpParamDef> outputs_;
    std::deque<OpAttrDef> attributes_;
    OpAICoreDef ai_core_;
    OpMC2Def mc2_;
};

}  // namespace ops
