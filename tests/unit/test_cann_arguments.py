"""Arguments of an operator's call, from definition, case and generated header."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_backend import make_operator

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import AttributeValue, Case, DType, TensorSpec
from ascend_gym.suite.cann_opdef import read_opdef
from ascend_gym.suite.loader import load_operator
from npu_daemon.cann.arguments import arguments_of, declared_kinds, fitted, interface_of, unsupported_reason

DEFINITION = read_opdef(
    """
class Sample : public OpDef {
    explicit Sample(const char* name) : OpDef(name) {
        this->Input("x").ParamType(DYNAMIC).DataType({ge::DT_FLOAT16});
        this->Input("axes").ParamType(REQUIRED).DataType({ge::DT_INT32});
        this->Input("bias").ParamType(OPTIONAL).DataType({ge::DT_FLOAT});
        this->Attr("epsilon").AttrType(OPTIONAL).Float(1e-5f);
        this->Attr("mode").AttrType(OPTIONAL).String("fast");
        this->Attr("keep").AttrType(OPTIONAL).Bool(true);
        this->Attr("dims").AttrType(OPTIONAL).ListInt({1, -2});
        this->Attr("group").AttrType(REQUIRED).Int();
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT16});
    }
};
""",
    "here",
)
HEADER = """
__attribute__((visibility("default")))
aclnnStatus aclnnSampleGetWorkspaceSize(
    const aclTensorList *x,
    const aclIntArray *axes,
    const aclTensor *biasOptional,
    double epsilon,
    char *modeOptional,
    bool keep,
    const aclIntArray *dimsOptional,
    int64_t group,
    const aclTensor *out,
    uint64_t *workspaceSize,
    aclOpExecutor **executor);
"""


def _case(**attributes: AttributeValue) -> Case:
    return Case(
        case_id="c",
        inputs=(
            TensorSpec(name="x", dtype=DType.FLOAT16, shapes=((2, 3), (4,)), dynamic=True),
            TensorSpec(name="axes", dtype=DType.INT32, shapes=((2,),)),
        ),
        outputs=(TensorSpec(name="y", dtype=DType.FLOAT16, shapes=((2, 3),)),),
        attributes=attributes,
    )


def test_arguments_are_in_the_order_of_the_definition_with_its_defaults() -> None:
    lines = [argument.line for argument in arguments_of(DEFINITION, _case(group=4))]
    assert lines == [
        "argument list 2 in x 1 12 in-0-0.bin 2 2 3 in x 1 8 in-0-1.bin 1 4",
        "argument tensor in axes 3 8 in-1-0.bin 1 2",
        "argument absent",
        "argument double 1e-05",
        "argument string x66617374",
        "argument bool 1",
        "argument int64s 2 1 -2",
        "argument int64 4",
        "argument tensor out y 1 12 out-0-0.bin 2 2 3",
    ]


def test_values_of_the_case_go_before_defaults() -> None:
    case = _case(group=1, epsilon=0.5, mode="", keep=False, dims=(7,))
    lines = [argument.line for argument in arguments_of(DEFINITION, case)]
    assert lines[3:8] == [
        "argument double 0.5",
        "argument string x",
        "argument bool 0",
        "argument int64s 1 7",
        "argument int64 1",
    ]


@pytest.mark.parametrize(
    ("attributes", "complaint"),
    [
        ({}, "attribute group: it has no default; give its value in the case"),
        ({"group": "many"}, "attribute group: invalid literal"),
        ({"group": (1, 2)}, "attribute group: expected one value, got 2"),
        ({"group": 1, "keep": 3}, "expected true or false"),
    ],
)
def test_a_case_that_does_not_fit_is_refused(attributes: dict[str, AttributeValue], complaint: str) -> None:
    with pytest.raises(MisuseError, match=complaint):
        arguments_of(DEFINITION, _case(**attributes))


def test_more_real_attributes_than_a_call_can_pass_are_refused() -> None:
    (real,) = (each for each in DEFINITION.attributes if each.type == "Float")
    many = replace(DEFINITION, attributes=tuple(replace(real, name=f"a{number}") for number in range(9)))
    with pytest.raises(MisuseError, match="at most 8 real attributes, the definition has 9"):
        arguments_of(many, _case())
    fewer = arguments_of(replace(many, attributes=many.attributes[1:]), _case())
    assert [argument.kind for argument in fewer].count("double") == 8


def test_a_tensor_in_place_is_refused() -> None:
    in_place = TensorSpec(name="x", dtype=DType.FLOAT16, shapes=((2, 3),))
    case = _case(group=1).model_copy(update={"outputs": (in_place,)})
    with pytest.raises(MisuseError, match="computed in place"):
        arguments_of(DEFINITION, case)


def test_a_header_is_read_and_values_of_inputs_become_arrays(tmp_path: Path) -> None:
    kinds = declared_kinds(HEADER, "aclnnSample")
    assert kinds == ["list", "int64s", "tensor", "double", "string", "bool", "int64s", "int64", "tensor"]
    assert declared_kinds(HEADER, "aclnnOther") is None
    np.array([0, -1], np.int32).tofile(tmp_path / "axes")
    arguments = arguments_of(DEFINITION, _case(group=1))
    agreed = fitted(arguments, kinds, {"in-1-0.bin": tmp_path / "axes"})
    assert not isinstance(agreed, str)
    assert agreed[1].line == "argument int64s 2 0 -1"
    assert agreed[:1] + agreed[2:] == arguments[:1] + arguments[2:]


def test_another_interface_is_told() -> None:
    arguments = arguments_of(DEFINITION, _case(group=1))
    header = HEADER.replace("double", "int64_t").replace("aclIntArray *axes", "aclTensor *axes")
    kinds = declared_kinds(header, "aclnnSample")
    assert kinds is not None
    message = "epsilon is declared as int64, the operator's definition has double"
    assert fitted(arguments, kinds, {}) == message
    assert fitted(arguments, kinds[1:], {}) == "the interface has 8 parameters, the operator's definition 9"


@pytest.mark.parametrize(
    "name", ["add", "exp", "foreach_add", "gather", "gelu", "muls", "rms_norm", "softmax"]
)
def test_every_operator_of_the_suite_can_be_called(name: str) -> None:
    spec = load_operator(name)
    assert unsupported_reason(spec) is None
    arguments = arguments_of(interface_of(spec), spec.cases[0])
    names = [argument.name for argument in arguments if argument.tensors]
    assert names == [tensor.name for tensor in (*spec.cases[0].inputs, *spec.cases[0].outputs)]


def test_an_operator_without_definition_is_not_supported(tmp_path: Path) -> None:
    assert "expected one 'class X : public OpDef'" in str(unsupported_reason(make_operator(tmp_path)))
