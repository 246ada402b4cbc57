"""cann-ops folders: a small one written here, and the two of a real checkout where there is one."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
from suite_folders import CMAKE, GEN_DATA, MAIN_CPP, OP_DEF, write_example_operator

from ascend_gym.core.cpp_text import without_comments
from ascend_gym.core.errors import MisuseError, OperatorFormatError
from ascend_gym.core.records import DType
from ascend_gym.suite.audit import audit_case
from ascend_gym.suite.cann_opdef import AttributeDef, expand_macros, read_opdef
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.sandbox import CONFINING, sandbox_level

CHECKOUT = Path(os.environ.get("ASCEND_GYM_CANN_OPS", "/no/checkout/given"))
needs_checkout = pytest.mark.skipif(
    not (CHECKOUT / "src" / "math").is_dir(),
    reason="no cann-ops checkout: set ASCEND_GYM_CANN_OPS to one",
)


def test_comments_go_and_strings_stay() -> None:
    text = 'int a; // one\nchar* url = "http://x"; /* two\n three */ int b;'
    assert without_comments(text) == 'int a;  \nchar* url = "http://x";   int b;'


def test_a_definition_is_read_from_its_text() -> None:
    definition = read_opdef(OP_DEF, "twice.cpp")
    assert definition.op_type == "Twice"
    assert [(p.name, p.optional, p.dynamic) for p in definition.inputs] == [
        ("x", False, False),
        ("bias", True, False),
    ]
    assert definition.inputs[0].dtypes == (DType.FLOAT16, DType.FLOAT32)
    assert definition.attributes == (AttributeDef("scale", "Float", True),)
    assert [p.name for p in definition.outputs] == ["y"]


def test_an_example_becomes_an_operator_with_one_case(tmp_path: Path) -> None:
    spec = load_operator("twice", op_dir=write_example_operator(tmp_path / "math" / "twice"))
    assert (spec.op_id, spec.op_type, spec.category, spec.auto_sync) == (
        "local/twice",
        "Twice",
        "math",
        False,
    )
    (case,) = spec.cases
    x, bias = case.inputs
    assert (x.name, x.dtype, x.shapes) == ("x", DType.FLOAT32, ((4, 8),))
    assert bias.optional_absent
    assert case.attributes == {"scale": 2.0}
    tolerance = case.tolerance[DType.FLOAT32]
    assert (tolerance.atol, tolerance.rtol, tolerance.max_bad_share) == (1e-4, 1e-4, 1e-4)


def test_automatic_synchronisation_is_on_unless_switched_off(tmp_path: Path) -> None:
    folder = write_example_operator(tmp_path, cmake=CMAKE.replace("=off", "=on"))
    assert load_operator("twice", op_dir=folder).auto_sync


def test_gen_data_gives_seeded_inputs_and_their_golden_outputs(tmp_path: Path) -> None:
    spec = load_operator("twice", op_dir=write_example_operator(tmp_path))
    oracle, case = oracle_for(spec), spec.cases[0]
    inputs = oracle.inputs(case, 7)
    assert [len(arrays) for arrays in inputs] == [1, 0]
    expected = oracle.expected(case, inputs)
    assert np.array_equal(expected[0][0], 2.0 * inputs[0][0])
    assert np.array_equal(oracle.inputs(case, 7)[0][0], inputs[0][0])
    assert not np.array_equal(oracle.inputs(case, 8)[0][0], inputs[0][0])
    assert np.array_equal(oracle.expected(case, inputs)[0][0], expected[0][0])
    assert audit_case(spec, case, 7) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "CMakeLists.txt",
        "examples",
        "op_host",
        "op_kernel",
    ]


def test_golden_outputs_of_foreign_inputs_are_refused(tmp_path: Path) -> None:
    spec = load_operator("twice", op_dir=write_example_operator(tmp_path))
    with pytest.raises(MisuseError, match="these inputs are none of the 4 in its data files"):
        oracle_for(spec).expected(spec.cases[0], [[np.zeros((4, 8), np.float32)], []])


def test_inputs_may_be_literals_of_main_cpp(tmp_path: Path) -> None:
    numbers = ", ".join(f"{i}.5f" for i in range(32))
    main = MAIN_CPP.replace("xData(32), yData", f"xData = {{{numbers}}}, yData").replace("input_x", "none")
    spec = load_operator("twice", op_dir=write_example_operator(tmp_path, main=main))
    array = oracle_for(spec).inputs(spec.cases[0], 0)[0][0]
    assert array.reshape(-1).tolist() == [i + 0.5 for i in range(32)]


def test_shapes_may_come_from_the_files_of_gen_data(tmp_path: Path) -> None:
    main = MAIN_CPP.replace(
        "std::vector<int64_t> xShape = {4, 8};",
        'int64_t rows = 0; std::ifstream rowsFile("../input/rows.txt"); rowsFile >> rows;'
        " std::vector<int64_t> xShape = {rows, 8};",
    )
    gen_data = GEN_DATA + "open('input/rows.txt', 'w').write('4')\n"
    spec = load_operator("twice", op_dir=write_example_operator(tmp_path, main=main, gen_data=gen_data))
    assert spec.cases[0].inputs[0].shapes == ((4, 8),)


def test_an_operator_without_outputs_gives_the_input_that_is_written_back(tmp_path: Path) -> None:
    host = OP_DEF.replace('this->Output("y")', 'this->Input("z")')
    main = MAIN_CPP.replace("x, nullptr, scale, y,", "x, nullptr, y, scale,")
    spec = load_operator("twice", op_dir=write_example_operator(tmp_path, host=host, main=main))
    case = spec.cases[0]
    assert [tensor.name for tensor in case.inputs] == ["x", "bias", "z"]
    assert [tensor.name for tensor in case.outputs] == ["z"]
    oracle = oracle_for(spec)
    inputs = oracle.inputs(case, 1)
    assert np.array_equal(oracle.expected(case, inputs)[0][0], 2.0 * inputs[0][0])


def test_a_tensor_that_is_changed_in_place_has_data_before_and_after(tmp_path: Path) -> None:
    host = OP_DEF.replace('this->Output("y")', 'this->Output("x")')
    main = MAIN_CPP.replace("x, nullptr, scale, y,", "x, nullptr, scale,").replace("4, yDevice", "4, xDevice")
    spec = load_operator("twice", op_dir=write_example_operator(tmp_path, host=host, main=main))
    case = spec.cases[0]
    assert [tensor.name for tensor in case.outputs] == ["x"]
    oracle = oracle_for(spec)
    inputs = oracle.inputs(case, 0)
    assert 0 < np.abs(inputs[0][0]).max() <= 1
    assert np.array_equal(oracle.expected(case, inputs)[0][0], 2.0 * inputs[0][0])


def test_of_several_calls_the_first_is_the_example(tmp_path: Path) -> None:
    """The second call has arguments of other types: a bias tensor instead of a null pointer."""
    again = (
        "aclTensor* other = Tensor(yData, xShape, ACL_FLOAT, &yDevice);\n"
        "    ret = aclnnTwiceGetWorkspaceSize(other, other, 3.0, other, &workspaceSize, &executor);\n"
        "    return ret;"
    )
    main = MAIN_CPP.replace("return ret;", again)
    spec = load_operator("twice", op_dir=write_example_operator(tmp_path, main=main))
    assert spec.cases[0].attributes == {"scale": 2.0}
    assert spec.cases[0].inputs[1].optional_absent


def test_main_may_stand_in_a_namespace(tmp_path: Path) -> None:
    main = MAIN_CPP.replace("int main() {", "namespace Twice {\nint main() {") + "}\n"
    spec = load_operator("twice", op_dir=write_example_operator(tmp_path, main=main))
    assert spec.cases[0].inputs[0].shapes == ((4, 8),)


def test_run_sh_may_compare_several_pairs_in_turn(tmp_path: Path) -> None:
    """Outputs and golden files alternate; a name alone says nothing about which belong together."""
    write = 'std::ofstream("../output/output_%s.bin", std::ios::binary).write((char*)%sData.data(), 32 * 4);'
    main = MAIN_CPP.replace(
        "return ret;",
        "aclrtMemcpy(xData.data(), 32 * 4, xDevice, 32 * 4, ACL_MEMCPY_DEVICE_TO_HOST);"
        + write % ("x", "x")
        + "return ret;",
    )
    gen_data = GEN_DATA.replace("golden.bin", "a.bin") + "x.tofile('./output/b.bin')\n"
    folder = write_example_operator(tmp_path, main=main, gen_data=gen_data)
    script = "python3 verify_result.py output/output_x.bin output/b.bin output/output_y.bin output/a.bin\n"
    (folder / "examples/AclNNInvocationNaive/run.sh").write_text(script)
    spec = load_operator("twice", op_dir=folder)
    oracle = oracle_for(spec)
    inputs = oracle.inputs(spec.cases[0], 1)
    assert np.array_equal(oracle.expected(spec.cases[0], inputs)[0][0], 2.0 * inputs[0][0])


def test_a_script_that_asks_for_the_chip_is_told_it(tmp_path: Path) -> None:
    gen_data = GEN_DATA + (
        "import subprocess\n"
        "fields = subprocess.check_output(['npu-smi', 'info', '-m'], text=True).split('\\n')[1].split()\n"
        "assert fields[3] + fields[4] == 'Ascend910B2'\n"
    )
    spec = load_operator("twice", op_dir=write_example_operator(tmp_path, gen_data=gen_data))
    assert oracle_for(spec).inputs(spec.cases[0], 0)[0][0].shape == (4, 8)


def refuse(folder: Path, **changes: str) -> str:
    with pytest.raises(OperatorFormatError) as caught:
        load_operator("twice", op_dir=write_example_operator(folder, **changes))
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "x, nullptr, scale, y",
            "x, y",
            "aclnnTwice(tensor, tensor) does not fit the definition of Twice(x, bias",
        ),
        ("aclnnTwiceGetWorkspaceSize", "aclopExecute", "no call of aclnn<Op>GetWorkspaceSize"),
        ("ACL_FLOAT, &x", "ACL_COMPLEX128, &x", "uses tensors of complex128, which cases cannot hold"),
        ("ACL_FLOAT, &x", "ACL_FLOAT16, &x", "no dtype combination ['float16', 'float32']"),
        ("scale = 2.0f", "scale = Choose()", "line 22: ‘Choose’ was not declared"),
        ("float scale", "return 3; float scale", "ended before its aclnn call: exit status 3"),
        ("xShape = {4, 8}", "xShape = {-4, 8}", "negative extent"),
    ],
)
def test_examples_in_another_form_are_refused_in_one_line(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    assert old in MAIN_CPP
    assert reason in refuse(tmp_path, main=MAIN_CPP.replace(old, new))


def test_definitions_in_another_form_are_refused(tmp_path: Path) -> None:
    assert "expected one 'class X : public OpDef'" in refuse(
        tmp_path, host="FOREACH_OPDEF(Twice) gert::TilingContext"
    )
    assert "does not fit" in refuse(tmp_path, host=OP_DEF.replace("REQUIRED", "DYNAMIC", 1))
    nameless = OP_DEF.replace("->Output", "->Result").replace("->Input", "->Source")
    assert "names no inputs and no outputs" in refuse(tmp_path, host=nameless)


def test_a_definition_that_macros_write_is_expanded() -> None:
    header = (
        "#include <not_there.h>\n#define MY_OPDEF(NAME, ...) class NAME : public OpDef { NAME() { \\\n"
        "  std::vector<ge::DataType> types = {__VA_ARGS__}; \\\n"
        '  this->Input("x").ParamType(DYNAMIC).DataType(types); \\\n'
        '  this->Output("y").ParamType(DYNAMIC).DataType(types); } };\n'
    )
    text = expand_macros([header, "MY_OPDEF(Thrice, ge::DT_FLOAT, ge::DT_BF16)"])
    definition = read_opdef(text, "thrice.cpp")
    assert definition.op_type == "Thrice"
    assert definition.inputs[0].dynamic
    assert definition.inputs[0].dtypes == (DType.FLOAT32, DType.BFLOAT16)


def test_of_several_definitions_the_named_one_is_read() -> None:
    other = OP_DEF.replace("Twice", "Thrice").replace('"x"', '"z"')
    definition = read_opdef(OP_DEF + other, "both.cpp", "Thrice")
    assert (definition.op_type, definition.inputs[0].name) == ("Thrice", "z")
    with pytest.raises(OperatorFormatError, match="found \\['Twice', 'Thrice'\\]"):
        read_opdef(OP_DEF + other, "both.cpp")


@pytest.mark.parametrize(
    ("gen_data", "reason"),
    [
        ("import no_such_module_anywhere\n", "needs no_such_module_anywhere (pip install"),
        (GEN_DATA.replace("golden.bin", "truth.dat"), "gen_data.py wrote no golden file"),
        (GEN_DATA.replace("(x * np.float32(2.0))", "x[:1]"), "golden file of y has 32 bytes; shape (4, 8)"),
        ("raise SystemExit(3)\n", "gen_data.py failed: exit 3"),
    ],
)
def test_scripts_that_fail_are_reported_in_one_line(tmp_path: Path, gen_data: str, reason: str) -> None:
    with pytest.raises(OperatorFormatError) as caught:
        load_operator("twice", op_dir=write_example_operator(tmp_path, gen_data=gen_data))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(sandbox_level() not in CONFINING, reason="this host cannot confine programs")
def test_programs_of_an_example_write_into_their_copy_alone(tmp_path: Path) -> None:
    gen_data = GEN_DATA + f"open({str(tmp_path / 'outside')!r}, 'w')\n"
    folder = write_example_operator(tmp_path / "twice", gen_data=gen_data)
    with pytest.raises(OperatorFormatError, match=r"gen_data\.py failed: PermissionError: .*outside"):
        load_operator("twice", op_dir=folder)
    assert not (tmp_path / "outside").exists()


def test_a_record_that_the_program_wrote_itself_names_no_other_files(tmp_path: Path) -> None:
    tensor = '{"acl_dtype": 0, "shape": [4, 8], "contiguous": true, "file": "../../0.done", "number": 1}'
    record = f'{{"function": "f", "arguments": [{{"kind": "tensor", "tensors": [{tensor}]}}]}}'
    main = (
        "#include <fstream>\n// aclnnTwiceGetWorkspaceSize()\nint main() {\n"
        f'std::ofstream(std::string(getenv("ASCEND_GYM_RECORD")) + "/record.json") << R"({record})";\n}}\n'
    )
    folder = write_example_operator(tmp_path / "twice", main=main)
    with pytest.raises(OperatorFormatError, match=r"main\.cpp: unreadable record: String should match"):
        load_operator("twice", op_dir=folder)


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed here")
def test_a_script_that_needs_torch_says_so(tmp_path: Path) -> None:
    gen_data = GEN_DATA.replace("(x * np.float32(2.0))", "torch.tensor(x).numpy()")
    with pytest.raises(OperatorFormatError, match=r": its gen_data.py needs torch \(pip install"):
        load_operator("twice", op_dir=write_example_operator(tmp_path, gen_data=gen_data))


@needs_checkout
@pytest.mark.parametrize(
    ("name", "inputs", "shape", "function"),
    [("add_custom", ["x", "y"], (8, 2048), np.add), ("sqrt", ["x"], (1024, 1024), np.sqrt)],
)
def test_unmodified_operators_of_the_checkout_load_and_pass_their_audit(
    name: str, inputs: list[str], shape: tuple[int, ...], function: np.ufunc
) -> None:
    spec = load_operator(name, op_dir=CHECKOUT / "src" / "math" / name)
    (case,) = spec.cases
    assert [tensor.name for tensor in case.inputs] == inputs
    assert case.outputs[0].shapes == (shape,)
    assert spec.auto_sync
    assert spec.baseline.kernel.main == f"op_kernel/{name}.cpp"
    oracle = oracle_for(spec)
    arrays = oracle.inputs(case, 3)
    expected = oracle.expected(case, arrays)
    assert np.array_equal(function(*(row[0] for row in arrays)), expected[0][0])
    assert audit_case(spec, case, 3) == []
