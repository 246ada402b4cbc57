"""What stands between an aclnn call and its kernel: arguments, axes, types, outputs without a golden file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from suite_folders import GEN_DATA, MAIN_CPP, OP_DEF, write_example_operator, write_files

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import DType
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.importer.layers import layer_of, permuted
from npu_daemon.importer.record import CallArgument, RecordedTensor
from npu_daemon.importer.references import reference_outputs, referenced_outputs

TWO_OUTPUTS = OP_DEF.replace(
    'this->Output("y")', 'this->Output("side").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT});'
    ' this->Output("y")'
)  # fmt: skip


def tensor(number: int, *shape: int) -> CallArgument:
    recorded = RecordedTensor(
        acl_dtype=0, shape=shape, contiguous=True, file=f"tensor{number}.bin", number=number
    )
    return CallArgument(kind="tensor", tensors=(recorded,))


def test_an_operator_that_is_not_listed_gets_its_arguments_as_they_are() -> None:
    layer = layer_of("NotListed")
    given = [tensor(1, 2, 3), CallArgument(kind="int", value=1)]
    assert list(layer.arrange(given)) == given
    assert layer.shape("x", (2, 3)) == (2, 3)
    array = np.arange(6)
    assert layer.array("x", array) is array


def test_paddings_of_the_last_axes_become_pairs_of_all_axes() -> None:
    padding = CallArgument(kind="ints", value=[1, 2, 3, 4])
    given = [tensor(1, 1, 1, 9, 6), tensor(2, 1, 1, 2, 3), padding, tensor(3, 1, 1, 2, 3)]
    grad, pairs, out = layer_of("CircularPadGrad").arrange(given)
    assert (grad.tensors[0].number, out.tensors[0].number) == (1, 3)
    assert pairs.value == [0, 0, 0, 0, 3, 4, 1, 2]
    assert [each.value for each in layer_of("PadV3GradReplicate").arrange(given)[1:4]] == [
        [0, 0, 0, 0, 3, 4, 1, 2],
        "edge",
        True,
    ]
    assert layer_of("PadV4Grad").shape("x", (1, 4)) == (1, 1, 1, 4)


def test_axes_are_reordered_alike_in_shapes_and_arrays() -> None:
    layer = layer_of("AdaptiveAvgPool3dGrad")
    array = np.arange(2 * 3 * 4 * 5 * 6).reshape(2, 3, 4, 5, 6)
    assert layer.shape("x_grad", array.shape) == (4, 5, 6, 6)
    seen = layer.array("x_grad", array)
    assert seen.flags.c_contiguous
    assert seen[1, 2, 3, 1 * 3 + 2] == array[1, 2, 1, 2, 3]
    assert permuted(1, 0)(np.zeros((2, 3))).shape == (3, 2)


def test_channels_come_last_whether_an_image_has_one_axis_or_two() -> None:
    layer = layer_of("UpsampleNearest")
    assert layer.shape("x", (2, 3, 5)) == (2, 5, 3)
    assert layer.shape("y", (2, 3, 5, 7)) == (2, 5, 7, 3)


def test_a_call_with_more_axes_than_are_understood_is_refused() -> None:
    with pytest.raises(OperatorFormatError, match="with 3 axes; only 4 are understood"):
        layer_of("GridSampler2DGrad").shape("x", (2, 3, 5))


def test_a_result_apart_becomes_the_input_that_the_kernel_updates() -> None:
    index, source, alpha = tensor(2, 4), tensor(3, 4, 2), CallArgument(kind="scalar")
    arranged = layer_of("InplaceIndexAddWithSorted").arrange(
        [tensor(1, 4, 2), CallArgument(kind="int", value=0), index, source, alpha, tensor(5, 4, 2)]
    )
    assert (arranged[0].tensors[0].file, arranged[0].tensors[0].number) == ("tensor1.bin", 5)
    layer = layer_of("InplaceIndexAddWithSorted")
    assert layer.array("sorted_indices", np.array([3, 1, 2, 1])).tolist() == [1, 1, 2, 3]
    assert layer.array("pos", np.array([3, 1, 2, 1])).tolist() == [1, 3, 2, 0]


def test_scattering_along_the_first_axis_becomes_scattering_along_the_last() -> None:
    layer = layer_of("ScatterElementsV2")

    def arranged(axis: int) -> list[CallArgument]:
        numbers = CallArgument(kind="int", value=axis), CallArgument(kind="int", value=1)
        given = [tensor(1, 3, 4), numbers[0], tensor(2, 2, 3), tensor(3, 2, 3), numbers[1], tensor(4, 3, 4)]
        return list(layer.arrange(given))

    assert [each.value for each in arranged(0)[3:]] == [-1, "add"]
    assert layer.shape("var", (3, 4)) == (4, 3)
    with pytest.raises(OperatorFormatError, match="along axis 1; only axis 0"):
        arranged(1)


def test_one_scale_becomes_one_for_each_row() -> None:
    rest = [CallArgument(kind="float", value=1.0), CallArgument(kind="int", value=0), tensor(4, 5, 2)]
    _, scale, *_ = layer_of("FakeQuantAffineCachemask").arrange(
        [tensor(1, 5, 2), tensor(2, 1), tensor(3, 1), *rest]
    )
    assert [each.number for each in scale.tensors] == [2] * 5


def test_modes_given_as_numbers_are_named() -> None:
    given = [tensor(1, 2), tensor(2, 2), CallArgument(kind="int", value=2), tensor(3)]
    arranged = layer_of("MSELossV2").arrange(given)
    assert arranged[2] == CallArgument(kind="string", value="sum")


def test_a_handwritten_function_casts_to_what_its_kernel_takes(tmp_path: Path) -> None:
    main = MAIN_CPP.replace("ACL_FLOAT, &x", "ACL_FLOAT16, &x")
    folder = write_example_operator(tmp_path, main=main)
    with pytest.raises(OperatorFormatError, match="no dtype combination"):
        load_operator("twice", op_dir=folder)
    write_files(folder, {"op_host/aclnn_twice.cpp": "// casts\n"})
    (case,) = load_operator("twice", op_dir=folder).cases
    assert (case.inputs[0].dtype, case.outputs[0].dtype) == (DType.FLOAT16, DType.FLOAT16)


def test_an_output_that_the_example_never_looks_at_is_open(tmp_path: Path) -> None:
    main = MAIN_CPP.replace("scale, y,", "scale, side, y,").replace(
        "uint64_t workspaceSize",
        "aclTensor* side = Tensor(yData, xShape, ACL_FLOAT, &yDevice);\n    uint64_t workspaceSize",
    )
    main = main.replace("aclTensor* side", "void* sideDevice; aclTensor* side").replace(
        "aclTensor* side = Tensor(yData, xShape, ACL_FLOAT, &yDevice)",
        "aclTensor* side = Tensor(yData, xShape, ACL_FLOAT, &sideDevice)",
    )
    spec = load_operator("twice", op_dir=write_example_operator(tmp_path, host=TWO_OUTPUTS, main=main))
    case, oracle = spec.cases[0], oracle_for(spec)
    assert [(output.name, output.open) for output in case.outputs] == [("side", True), ("y", False)]
    inputs = oracle.inputs(case, 0)
    expected = oracle.expected(case, inputs)
    right = 2.0 * inputs[0][0]
    assert oracle.judge(case, [[np.full((4, 8), np.nan, np.float32)], [right]], expected).correct
    assert not oracle.judge(case, [[right], [right + 1.0]], expected).correct


def test_an_optional_output_that_the_call_does_not_ask_for_is_no_output(tmp_path: Path) -> None:
    host = TWO_OUTPUTS.replace('"side").ParamType(REQUIRED)', '"side").ParamType(OPTIONAL)')
    main = MAIN_CPP.replace("scale, y,", "scale, nullptr, y,")
    spec = load_operator("twice", op_dir=write_example_operator(tmp_path, host=host, main=main))
    assert [output.name for output in spec.cases[0].outputs] == ["y"]
    oracle = oracle_for(spec)
    inputs = oracle.inputs(spec.cases[0], 0)
    assert np.array_equal(oracle.expected(spec.cases[0], inputs)[0][0], 2.0 * inputs[0][0])


def test_a_result_of_which_the_example_reads_few_elements_has_no_more(tmp_path: Path) -> None:
    main = MAIN_CPP.replace(
        "(char*)yData.data(), 32 * 4);\n    return", "(char*)yData.data(), 8);\n    return"
    )
    gen_data = GEN_DATA.replace("(x * np.float32(2.0))", "(x.ravel()[:2] * np.float32(2.0))")
    spec = load_operator("twice", op_dir=write_example_operator(tmp_path, main=main, gen_data=gen_data))
    assert spec.cases[0].outputs[0].shapes == ((2,),)


def test_gen_data_gets_the_arguments_of_run_sh(tmp_path: Path) -> None:
    gen_data = "import sys\nassert sys.argv[1:] == ['float32', 'a b']\n"
    folder = write_example_operator(tmp_path, gen_data=gen_data)
    with pytest.raises(OperatorFormatError, match="AssertionError"):
        load_operator("twice", op_dir=folder)
    write_files(folder / "examples/AclNNInvocationNaive", {"run.sh": "python3 gen_data.py 'float32' 'a b'\n"})
    with pytest.raises(OperatorFormatError, match="wrote no golden file"):
        load_operator("twice", op_dir=folder)


def test_references_compute_what_examples_leave_out() -> None:
    x = np.array([[1.0, -2.0, 3.0, 4.0]], np.float32)
    (gelu,) = reference_outputs("GeGluV2", {"x": [x]}, {"dim": -1})["gelu"]
    assert gelu == pytest.approx(np.array([[2.9963627, 3.9999297]]), rel=1e-4)
    ones = np.ones((1, 4), np.float32)
    outputs = reference_outputs("AddRmsNormQuant", {"x1": [x], "x2": [ones], "gamma": [ones[0]]}, {})
    assert outputs["x"][0].tolist() == [[2.0, -1.0, 4.0, 5.0]]
    both = {"x1": [x], "x2": [ones], "gamma": [ones[0]], "smooth_scale1": [ones[0]], "smooth_scale2": []}
    outputs = reference_outputs("AddRmsNormDynamicQuant", both, {})
    assert set(outputs) == {"x", "y1", "scale1"}
    assert outputs["y1"][0].tolist() == [[51, -25, 102, 127]]
    assert outputs.keys() <= referenced_outputs("AddRmsNormDynamicQuant")
    assert reference_outputs("NotListed", {}, {}) == {}
