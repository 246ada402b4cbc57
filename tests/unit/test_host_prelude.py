"""The header generated for kernel builds."""

from __future__ import annotations

from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case, DType, Phase, TensorSpec
from ascend_gym.core.status import Status
from npu_daemon.simulator.host_schema import (
    HostParameter,
    OperatorDefinition,
    RegisteredStructure,
    TilingField,
    TilingStructure,
)
from npu_daemon.simulator.kernel_prelude import kernel_prelude


def parameter(name: str, *types: str) -> HostParameter:
    return HostParameter(name=name, kind="required", types=types, formats=("ND",) * len(types))


def case(dtype: DType, *outputs: str) -> Case:
    def tensor(name: str) -> TensorSpec:
        return TensorSpec(name=name, dtype=dtype, shapes=((8,),))

    return Case(case_id="c", inputs=(tensor("xIn"),), outputs=tuple(tensor(name) for name in outputs))


def definition(
    *outputs: HostParameter, structures: tuple[RegisteredStructure, ...] = ()
) -> OperatorDefinition:
    inputs = (parameter("xIn", "DT_FLOAT16", "DT_FLOAT"),)
    return OperatorDefinition(
        op_type="Toy", inputs=inputs, outputs=outputs, attributes=(), structures=structures
    )


def text_of(toy: OperatorDefinition, problem: Case) -> str:
    text = kernel_prelude(toy, problem)
    assert isinstance(text, str)
    return text


def test_macros_follow_the_column_of_the_case() -> None:
    toy = definition(parameter("y", "DT_FLOAT16", "DT_FLOAT"))
    text = text_of(toy, case(DType.FLOAT32, "y"))
    assert "#define DTYPE_XIN float\n#define ORIG_DTYPE_XIN DT_FLOAT\n#define FORMAT_XIN FORMAT_ND\n" in text
    assert "#define DTYPE_Y float\n" in text
    assert "#define DTYPE_Y half\n" in text_of(toy, case(DType.FLOAT16, "y"))


def test_an_output_named_like_an_input_is_its_reference() -> None:
    text = text_of(definition(parameter("xIn", "DT_FLOAT16", "DT_FLOAT")), case(DType.FLOAT16, "xIn"))
    assert "#define DTYPE_XIN_REF half\n" in text
    assert text.count("#define DTYPE_XIN ") == 1


def test_a_structure_shared_by_two_owners_is_declared_once_and_first() -> None:
    inner = TilingStructure(
        name="Inner", bytes=8, fields=(TilingField(name="n", type="uint32_t", offset=0, bytes=4),)
    )

    def owner(name: str) -> TilingStructure:
        field = TilingField(name="inner", type="Inner", offset=0, bytes=8, structure=inner)
        return TilingStructure(name=name, bytes=8, fields=(field,))

    registered = (
        RegisteredStructure(structure=owner("Plain")),
        RegisteredStructure(tiling_key=3, structure=owner("Special")),
    )
    text = text_of(
        definition(parameter("y", "DT_FLOAT16", "DT_FLOAT"), structures=registered), case(DType.FLOAT16, "y")
    )
    assert text.count("struct alignas(8) Inner {") == 1
    assert text.index("Inner {") < text.index("Plain {") < text.index("Special {")
    assert "using asim_default_tiling = Plain;" in text


def test_a_case_of_other_types_is_a_tiling_error_that_lists_the_columns() -> None:
    failure = kernel_prelude(definition(parameter("y", "DT_FLOAT16", "DT_FLOAT")), case(DType.INT8, "y"))
    assert isinstance(failure, Failure)
    assert failure.status is Status.TILING_ERROR
    assert failure.diagnostics[0].phase is Phase.BUILD_KERNEL
    assert "DT_FLOAT16, DT_FLOAT16; DT_FLOAT, DT_FLOAT" in failure.diagnostics[0].message


def test_a_type_without_a_kernel_counterpart_is_named() -> None:
    toy = OperatorDefinition(
        op_type="Toy", inputs=(), outputs=(parameter("y", "DT_STRING"),), attributes=(), structures=()
    )
    absent = Case(
        case_id="c",
        inputs=(),
        outputs=(TensorSpec(name="y", dtype=DType.INT8, shapes=((1,),), optional_absent=True),),
    )
    failure = kernel_prelude(
        toy.model_copy(update={"outputs": (toy.outputs[0].model_copy(update={"kind": "optional"}),)}), absent
    )
    assert isinstance(failure, Failure)
    assert failure.diagnostics[0].message == "y: kernels have no element type for DT_STRING"
