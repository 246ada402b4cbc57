"""Host code is really compiled and really run: definitions, tiling contexts and layouts."""

from __future__ import annotations

import os
import random
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from host_side_machine import CHIP, HEAD, KIB, SIMPLE_CASE, Host, tensor, toolchain, toy

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case, DType, SourceFile, Sources
from npu_daemon.simulator import host_side
from npu_daemon.simulator.compiler import clang
from npu_daemon.simulator.host_side import (
    OperatorDefinition,
    TilingOutcome,
    build_host,
    describe_operator,
    kernel_prelude,
    run_tiling,
)
from npu_daemon.simulator.host_toolchain import host_compile_command

__all__ = ["toolchain"]

CANN_OPS = "ASCEND_GYM_CANN_OPS"
SIMULATOR = Path(host_side.__file__).parent

RICH = (
    HEAD
    + """
#include <sstream>
namespace optiling {
struct CompileInfo { uint32_t cores; };

BEGIN_TILING_DATA_DEF(Inner)
TILING_DATA_FIELD_DEF(uint8_t, flag);
TILING_DATA_FIELD_DEF_ARR(int16_t, 3, steps);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(InnerOp, Inner)

BEGIN_TILING_DATA_DEF(RichTiling)
TILING_DATA_FIELD_DEF(bool, wide);
TILING_DATA_FIELD_DEF(float, scale);
TILING_DATA_FIELD_DEF(uint8_t, tail);
TILING_DATA_FIELD_DEF(uint64_t, total);
TILING_DATA_FIELD_DEF_STRUCT(Inner, inner);
TILING_DATA_FIELD_DEF(int, last);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Rich, RichTiling)

BEGIN_TILING_DATA_DEF(RichTilingKey9)
TILING_DATA_FIELD_DEF(int64_t, only);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Rich_9, RichTilingKey9)

static ge::graphStatus Parse(gert::TilingParseContext *context) {
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    context->GetCompiledInfo<CompileInfo>()->cores = platform.GetCoreNumAiv();
    return ge::GRAPH_SUCCESS;
}

// Everything the context says, as one line on standard output and as tiling data.
static ge::graphStatus Tiling(gert::TilingContext *context) {
    const auto *info = reinterpret_cast<const CompileInfo *>(context->GetCompileInfo());
    const auto *attrs = context->GetAttrs();
    RichTiling original;
    original.set_total(context->GetInputShape(0)->GetStorageShape().GetShapeSize());
    RichTiling tiling = original;  // copies are independent
    original.inner.set_flag(1);
    tiling.set_wide(*attrs->GetAttrPointer<bool>(2));
    tiling.set_scale(*attrs->GetFloat(1));
    tiling.set_tail(context->GetOptionalInputShape(1) == nullptr ? 1 : 2);
    int16_t steps[3];
    steps[0] = context->GetIrInputInstanceInfo(2)->GetInstanceNum();
    steps[1] = context->GetDynamicInputShape(2, 1)->GetStorageShape().GetDim(0);
    steps[2] = context->GetComputeNodeInputNum();
    tiling.inner.set_flag(9);
    tiling.inner.set_steps(steps);
    const auto *list = attrs->GetAttrPointer<gert::ContinuousVector>(3);
    tiling.set_last(static_cast<int>(static_cast<const int64_t *>(list->GetData())[list->GetSize() - 1]));
    if (context->GetDynamicInputShape(2, 9) != nullptr) return ge::GRAPH_FAILED;
    if (context->GetInputDesc(9) != nullptr) return ge::GRAPH_FAILED;
    if (strcmp(attrs->GetStr(4), "two words") != 0) return ge::GRAPH_PARAM_INVALID;
    if (attrs->GetListListInt(5)->Get(1)->GetSize() != 2) return ge::GRAPH_PARAM_INVALID;
    if (context->GetInputDesc(0)->GetDataType() != ge::DT_FLOAT) return ge::GRAPH_PARAM_INVALID;
    std::cout << "noise on standard output" << std::endl;

    context->SetBlockDim(info->cores);
    context->SetTilingKey(10000000000000000001UL);
    context->SetScheduleMode(1);
    context->SetNeedAtomic(true);
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    size_t *workspaces = context->GetWorkspaceSizes(2);
    workspaces[0] = platform.GetLibApiWorkSpaceSize();
    const auto *values = context->GetInputTensor(3)->GetData<int32_t>();
    workspaces[1] = values == nullptr ? 0 : values[1];
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    return ge::GRAPH_SUCCESS;
}
IMPL_OP_OPTILING(Rich).Tiling(Tiling).TilingParse<CompileInfo>(Parse);
}

static ge::graphStatus InferShapeOfRich(gert::InferShapeContext *context) {
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return ge::GRAPH_SUCCESS;
}
IMPL_OP_INFERSHAPE(Rich).InferShape(InferShapeOfRich);

namespace ops {
class Rich : public OpDef {
 public:
    explicit Rich(const char *name) : OpDef(name) {
        const std::vector<ge::Format> nd(2, ge::FORMAT_ND);
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT}).Format(nd)
            .AutoContiguous();
        this->Input("bias").ParamType(OPTIONAL).DataType({ge::DT_FLOAT, ge::DT_FLOAT}).Format(nd);
        this->Input("list").ParamType(DYNAMIC).DataType({ge::DT_FLOAT16, ge::DT_FLOAT}).Format(nd);
        this->Input("sizes").ParamType(REQUIRED).DataTypeList({ge::DT_INT32}).FormatList({ge::FORMAT_ND})
            .ValueDepend(OPTIONAL);
        this->Output("y").ParamType(REQUIRED).Follow("x").InitValue(0);
        this->Attr("axis").Int();
        this->Attr("scale").AttrType(OPTIONAL).Float(0.5);
        this->Attr("wide").AttrType(OPTIONAL).Bool(true);
        this->Attr("steps").AttrType(OPTIONAL).ListInt({1, 2});
        this->Attr("mode").AttrType(OPTIONAL).String("two words");
        this->Attr("pads").AttrType(OPTIONAL).ListListInt({{1}, {2, 3}});
        OpAICoreConfig config;
        config.Input("bias").ParamType(OPTIONAL).DataType({ge::DT_INT8, ge::DT_INT8}).Format(nd);
        config.DynamicShapeSupportFlag(true).PrecisionReduceFlag(true);
        this->AICore().AddConfig("ascend910b");
        this->AICore().AddConfig("ascend310p", config);
    }
};
OP_ADD(Rich);
}
"""
)
RICH_CASE = Case(
    case_id="c",
    inputs=(
        tensor("x", (6, 7), dtype=DType.FLOAT32),
        tensor("list", (3,), (5, 2), dtype=DType.FLOAT32, dynamic=True),
        tensor("sizes", (2,), dtype=DType.INT32),
    ),
    outputs=(tensor("y", (6, 7), dtype=DType.FLOAT32),),
    attributes={"axis": 1, "steps": (4, -5), "scale": 0.25},
)


@pytest.fixture(scope="module")
def rich(toolchain: Path, tmp_path_factory: pytest.TempPathFactory) -> Host:
    """An operator that uses every kind of parameter, attribute and tiling field."""
    return Host(RICH, tmp_path_factory.mktemp("rich"), toolchain)


@pytest.mark.slow
def test_the_precompiled_header_is_used(toolchain: Path, tmp_path: Path) -> None:
    (tmp_path / "toy.cpp").write_text(toy("return ge::GRAPH_SUCCESS;"))
    command = host_compile_command(toolchain, "toy.cpp", "toy.ll")
    headers = subprocess.run([*command, "-H"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "op_def_registry.h" not in headers.stderr


def test_the_definition_is_that_of_the_op_def(rich: Host) -> None:
    definition = rich.definition()
    assert definition.op_type == "Rich"
    assert [(p.name, p.kind, p.value_dependent) for p in definition.inputs] == [
        ("x", "required", False),
        ("bias", "optional", False),
        ("list", "dynamic", False),
        ("sizes", "required", True),
    ]
    slots = [[slot.type for slot in (*c.inputs, *c.outputs)] for c in definition.columns()]
    assert slots == [
        ["DT_FLOAT16", "DT_FLOAT", "DT_FLOAT16", "DT_INT32", "DT_FLOAT16"],
        ["DT_FLOAT", "DT_FLOAT", "DT_FLOAT", "DT_INT32", "DT_FLOAT"],
    ]
    assert definition.outputs[0].initial_values == (0.0,)
    assert {a.name: (a.type, a.required, a.default) for a in definition.attributes} == {
        "axis": ("int", True, None),
        "scale": ("float", False, 0.5),
        "wide": ("bool", False, True),
        "steps": ("list_int", False, [1, 2]),
        "mode": ("string", False, "two words"),
        "pads": ("list_list_int", False, [[1], [2, 3]]),
    }
    assert [(s.tiling_key, s.structure.name) for s in definition.structures] == [
        (None, "RichTiling"),
        (9, "RichTilingKey9"),
    ]


def test_a_chip_may_change_a_parameter(rich: Host) -> None:
    definition = rich.definition(replace(CHIP, soc_version="Ascend310P3"))
    assert [(p.name, p.types[0]) for p in definition.inputs[:2]] == [("x", "DT_FLOAT16"), ("bias", "DT_INT8")]


def test_a_chip_without_configuration_is_refused(rich: Host) -> None:
    failure = rich.describe(replace(CHIP, soc_version="Ascend950PR_9599"))
    assert isinstance(failure, Failure)
    assert "not defined for ascend950" in failure.diagnostics[0].message
    assert "ascend310p, ascend910b" in failure.diagnostics[0].message


def test_the_tiling_function_sees_the_case_and_its_decision_comes_back(rich: Host) -> None:
    outcome = rich.decide(RICH_CASE)
    assert (outcome.block_dim, outcome.tiling_key) == (48, 10000000000000000001)
    assert outcome.workspace_bytes == (16 * KIB * KIB, 0)
    assert (outcome.need_atomic, outcome.schedule_mode) == (True, 1)
    wide, scale, tail, total, flag, *steps, last = struct.unpack("<?3xfB7xQBx3hi4x", outcome.tiling_data)
    assert (wide, scale, tail, total) == (True, 0.25, 1, 42)
    assert (flag, steps, last) == (9, [2, 5, 4], -5)
    assert outcome.schema is not None
    assert [(f.name, f.offset, f.bytes) for f in outcome.schema.fields] == [
        ("wide", 0, 1),
        ("scale", 4, 4),
        ("tail", 8, 1),
        ("total", 16, 8),
        ("inner", 24, 8),
        ("last", 32, 4),
    ]
    assert outcome.schema.bytes == len(outcome.tiling_data) == 40


def test_values_of_value_dependent_inputs_are_readable(rich: Host, tmp_path: Path) -> None:
    (tmp_path / "sizes").write_bytes(struct.pack("<2i", 7, 4096))
    files = [[tmp_path / "x"], [tmp_path / "list0", tmp_path / "list1"], [tmp_path / "sizes"]]
    assert rich.decide(RICH_CASE, input_files=files).workspace_bytes[1] == 4096


def test_a_present_optional_input_moves_the_tensors_behind_it(rich: Host) -> None:
    bias = tensor("bias", (7,), dtype=DType.FLOAT32)
    outcome = rich.decide(RICH_CASE.model_copy(update={"inputs": (*RICH_CASE.inputs, bias)}))
    assert outcome.tiling_data[8] == 2
    assert struct.unpack_from("<3h", outcome.tiling_data, 26) == (2, 5, 5)


def test_a_missing_attribute_is_named_before_anything_runs(rich: Host) -> None:
    failure = rich.tile(RICH_CASE.model_copy(update={"attributes": {}}))
    assert isinstance(failure, Failure)
    assert failure.diagnostics[0].message == "attribute 'axis' has no default: the case must set it"


def test_chip_figures_come_from_the_request(toolchain: Path, tmp_path: Path) -> None:
    body = """
    auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    uint64_t words[8] = {};
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, words[0]);
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::L1, words[1]);
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::L2, words[2]);
    words[3] = platform.GetCoreNumAic() * 1000 + platform.GetCoreNum();
    words[4] = platform.GetSocVersion() == platform_ascendc::SocVersion::ASCEND910B;
    words[7] = context->GetPlatformInfo()->GetCoreNum();
    words[5] = platform.CalcTschBlockDim(9, platform.GetCoreNumAic(), platform.GetCoreNumAiv());
    platform.ReserveLocalMemory(platform_ascendc::ReservedSize::RESERVED_SIZE_16K);
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, words[6]);
    context->SetBlockDim(platform.GetCoreNumAiv());
    return context->GetRawTilingData()->Append(words, 8);"""
    host = Host(toy(body), tmp_path, toolchain)
    outcome = host.decide(chip=replace(CHIP, aic_cores=20, aiv_cores=40))
    words = struct.unpack("<8Q", outcome.tiling_data)
    assert words == (
        192 * KIB - 256,
        512 * KIB - 256,
        192 * KIB * KIB,
        20040,
        1,
        5,
        176 * KIB - 256,
        40,
    )
    mixed = host.decide(chip=replace(CHIP, aic_cores=20, aiv_cores=40, core_num=20))
    assert struct.unpack("<8Q", mixed.tiling_data)[3] == 20020
    assert (outcome.block_dim, outcome.schema, outcome.workspace_bytes) == (40, None, ())


def test_an_unknown_operator_is_answered_with_the_registered_ones(rich: Host) -> None:
    failure = rich.describe(op_type="Poor")
    assert isinstance(failure, Failure)
    assert failure.diagnostics[0].message.startswith("expected operator Poor to be registered")
    assert "registered: Rich" in failure.diagnostics[0].message


def random_structures(count: int, seed: int) -> str:
    """Return declarations of ``count`` tiling structures; later ones nest earlier ones."""
    types = ("int8_t", "uint16_t", "int32_t", "uint64_t", "float", "bool", "uint8_t", "int64_t")
    choose = random.Random(seed)
    text = ""
    for number in range(count):
        fields = ""
        for field in range(choose.randint(1, 8)):
            kind = choose.choice(("plain", "array", "struct"))
            if kind == "struct" and number:
                fields += f"TILING_DATA_FIELD_DEF_STRUCT(S{choose.randrange(number)}, f{field});\n"
            elif kind == "array":
                fields += (
                    f"TILING_DATA_FIELD_DEF_ARR({choose.choice(types)}, {choose.randint(1, 9)}, f{field});\n"
                )
            else:
                fields += f"TILING_DATA_FIELD_DEF({choose.choice(types)}, f{field});\n"
        text += f"BEGIN_TILING_DATA_DEF(S{number})\n{fields}END_TILING_DATA_DEF;\n"
        text += f"REGISTER_TILING_DATA_CLASS(Toy_{number}, S{number})\n"
    return text


def test_host_and_kernel_agree_on_the_layout_of_any_structure(toolchain: Path, tmp_path: Path) -> None:
    """The compiler checks the layout of each generated structure against the offsets of the host side."""
    host = Host(toy("return 0;", random_structures(40, seed=2)), tmp_path, toolchain)
    prelude = kernel_prelude(host.definition(), SIMPLE_CASE)
    assert isinstance(prelude, str)
    assert prelude.count("static_assert(sizeof(") == 40
    (tmp_path / "prelude.h").write_text(prelude)
    (tmp_path / "check.cpp").write_text(
        '#include "asim/api/language.h"\n#include "prelude.h"\n'
        "void entry(const uint8_t *tiling) {\n"
        "    GET_TILING_DATA_WITH_STRUCT(S3, whole, tiling);\n"
        "    GET_TILING_DATA_MEMBER(S3, f0, part, tiling);\n"
        "    GET_TILING_DATA_PTR_WITH_STRUCT(S4, pointer, tiling);\n"
        "    static_assert(sizeof(part) == sizeof(whole.f0) && sizeof(*pointer) == sizeof(S4));\n"
        "}\n"
    )
    command = clang("-std=c++17", "-fsyntax-only", f"-I{SIMULATOR / 'include'}", "check.cpp")
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.skipif(CANN_OPS not in os.environ, reason=f"{CANN_OPS} does not name a checkout of cann-ops")
@pytest.mark.parametrize(
    ("name", "op_type", "inputs", "output", "counts"),
    [
        ("add_custom", "AddCustom", ("x", "y"), "z", "<8Q"),
        ("sqrt", "Sqrt", ("x",), "y", "<8I"),
    ],
)
def test_unmodified_cann_ops_host_code_plans_every_element(
    toolchain: Path,
    tmp_path: Path,
    name: str,
    op_type: str,
    inputs: tuple[str, ...],
    output: str,
    counts: str,
) -> None:
    folder = Path(os.environ[CANN_OPS]) / "src" / "math" / name
    files = tuple(
        SourceFile(path=path.relative_to(folder).as_posix(), text=path.read_text(encoding="utf-8"))
        for path in sorted((folder / "op_host").glob("*.*"))
        if path.suffix in (".cpp", ".h")
    )
    sources = Sources(files=files, main=f"op_host/{name}.cpp")
    library = build_host(sources, tmp_path, toolchain)
    assert isinstance(library, Path), library
    definition = describe_operator(library, CHIP, toolchain, op_type=op_type)
    assert isinstance(definition, OperatorDefinition), definition
    shape = (8192, 2050)
    case = Case(case_id="c", inputs=tuple(tensor(x, shape) for x in inputs), outputs=(tensor(output, shape),))
    outcome = run_tiling(library, definition, case, CHIP, tmp_path, toolchain)
    assert isinstance(outcome, TilingOutcome), outcome
    assert outcome.schema is not None
    fields = dict(
        zip([f.name for f in outcome.schema.fields], struct.unpack(counts, outcome.tiling_data), strict=True)
    )
    big, small = fields["bigCoreDataNum"], fields["smallCoreDataNum"]
    planned = fields["tailBlockNum"] * big + (outcome.block_dim - fields["tailBlockNum"]) * small
    assert (outcome.block_dim, planned) == (48, shape[0] * shape[1])
