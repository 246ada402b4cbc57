"""Sources and cases of a library by domain, from a miniature one."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from benchmark_modules import fidelity_benchmark

from ascend_gym.core.errors import MisuseError, OperatorFormatError
from ascend_gym.core.records import DType, TensorSpec, ValueRange
from ascend_gym.suite import imported, loader
from ascend_gym.suite.cann_opdef import read_opdef
from ascend_gym.suite.domain_library import (
    operator_folders,
    read_library_candidate,
    read_library_operator,
    tiling_sources,
)
from ascend_gym.suite.inputs import read_data_file
from npu_daemon.importer import library
from npu_daemon.importer.golden_runner import stored
from npu_daemon.importer.library import NO_REFERENCE, write_library_operator
from npu_daemon.importer.library_cases import (
    CaseDraft,
    ProposedTensor,
    output_dtypes,
    proposals,
    recorded_case,
)
from npu_daemon.importer.library_texts import faked_contexts, graph_example, tiling_tests
from npu_daemon.importer.output_shapes import OutputShapes
from npu_daemon.importer.record import CallArgument, RecordedTensor
from npu_daemon.importer.writing import write_arrays

_DEFINITION = """
class Twice : public OpDef {
    explicit Twice(const char *name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Attr("scale").Float(2.0);
        OpAICoreConfig config;
        this->AICore().AddConfig("CHIP", config);
    }
};
OP_ADD(Twice);
"""
_HEADER = "testcase_name,input_shapes,input_dtypes,output_shapes,output_dtypes,attributes,input_data_ranges\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with one operator, a helper beside it and a header in common."""
    files = {
        "build.sh": "",
        "cmake/func.cmake": "",
        "common/inc/op_host/sizes.h": "#pragma once\n",
        "math/helper/op_host/helper_tiling.h": "#pragma once\n",
        "math/twice/CMakeLists.txt": 'set(UNITS "ascend910b" "ascend950")\nset(DIRS "arch22" "arch35")\n'
        "add_all_modules_sources(OPTYPE twice COMPUTE_UNIT ${UNITS} TILING_DIR ${DIRS})\n",
        "math/twice/op_host/twice_def.cpp": _DEFINITION.replace("CHIP", "ascend910b"),
        "math/twice/op_host/arch22/twice_tiling.cpp": '#include "op_host/sizes.h"\n'
        '#include "../../../helper/op_host/helper_tiling.h"\nIMPL_OP_OPTILING(Twice);\n',
        "math/twice/op_host/arch35/twice_tiling_arch35.cpp": "",
        "math/twice/op_kernel/twice.cpp": "__global__ __aicore__ void twice() {}\n",
        "math/twice/tests/st/twice.csv": _HEADER
        + 'a,"((64,),)","(\'float32\',)","((64,),)","(\'float32\',)",{\'scale\': 3.0},"((-2, inf),)"\n'
        + 'b,"((64,","(\'float32\',)",,,{},\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_candidate_has_the_sources_for_this_chip_and_what_they_include(root: Path) -> None:
    folder = operator_folders(root)["twice"]
    operator = read_library_operator(folder, root)
    candidate = read_library_candidate(operator)
    assert [path.name for path in tiling_sources(folder)] == ["twice_tiling.cpp"]
    assert candidate.host.main == "op_host/arch22/twice_tiling.cpp"
    files = {file.path: file.text for file in candidate.host.files}
    assert "shared/common/inc/op_host/sizes.h" in files
    assert (
        files["shared/helper/op_host/helper_tiling.h"] == '#include "math/helper/op_host/helper_tiling.h"\n'
    )


def test_operators_for_later_chips_are_refused_with_that_sentence(root: Path) -> None:
    definition = root / "math/twice/op_host/twice_def.cpp"
    definition.write_text(_DEFINITION.replace("CHIP", "ascend950"), encoding="utf-8")
    with pytest.raises(OperatorFormatError, match="for Ascend 950 alone"):
        read_library_operator(root / "math/twice", root)


def test_another_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="expected a checkout of ops-math"):
        operator_folders(tmp_path)


def test_csv_rows_become_cases_and_broken_ones_are_told_with_their_line(root: Path) -> None:
    definition = read_opdef(_DEFINITION, "twice")
    notes: list[str] = []
    (found,) = proposals(root / "math/twice", definition, notes.append)
    assert found.attributes == {"scale": 3.0}
    assert (found.inputs[0].shapes, found.inputs[0].dtype) == (((64,),), DType.FLOAT32)
    assert len(notes) == 1
    assert notes[0].startswith("tests/st/twice.csv:3: SyntaxError")


_GRAPH_EXAMPLE = """
#define ADD_INPUT(index, name, type, shape) \\
    node.set_input_##name(data(shape))
int main() {
    DataType inDtype = DT_FLOAT16;
    std::vector<int64_t> xShape = {4, 96};
    vector<vector<int64_t>> more = {{2}, {3, 5}};
    ADD_INPUT(1, x, inDtype, xShape);
    ADD_INPUT(2, bias, DT_INT32, more[1]);
    ADD_INPUT_ATTR(scale, 0.5f);
    ADD_OUTPUT(1, y, inDtype, xShape);
}
"""
_TILING_TEST = """
TEST_F(Twice, right) {
    gert::TilingContextPara para("Twice", {{{{8, 64}, {8, 64}}, ge::DT_FLOAT, ge::FORMAT_ND}},
        {{{{8, 64}, {8, 64}}, ge::DT_FLOAT, ge::FORMAT_ND}},
        {{"scale", AnyValue::CreateFrom<float>(3.0f)}}, &info);
    ExecuteTestCase(para, ge::GRAPH_SUCCESS, 0);
}
TEST_F(Twice, refused) {
    gert::TilingContextPara para("Twice", {{{{1}, {1}}, ge::DT_FLOAT, ge::FORMAT_ND}},
        {{{{1}, {1}}, ge::DT_FLOAT, ge::FORMAT_ND}}, &info);
    ExecuteTestCase(para, ge::GRAPH_FAILED, 0);
}
"""


def test_graph_examples_say_types_shapes_and_attributes(tmp_path: Path) -> None:
    path = tmp_path / "test_geir_twice.cpp"
    path.write_text(_GRAPH_EXAMPLE, encoding="utf-8")
    inputs, outputs, attributes, line = graph_example(path)
    assert inputs == [("x", (4, 96), "float16"), ("bias", (3, 5), "int32")]
    assert outputs == [("y", (4, 96), "float16")]
    assert attributes == {"scale": 0.5}
    assert path.read_text().splitlines()[line - 1].strip().startswith("ADD_INPUT(1")


def test_graph_examples_with_shapes_that_are_computed_are_told(tmp_path: Path) -> None:
    path = tmp_path / "test_geir_twice.cpp"
    path.write_text(_GRAPH_EXAMPLE.replace("more[1]", "shape_of(x)"), encoding="utf-8")
    with pytest.raises(ValueError, match="line 9: the type or shape of bias"):
        graph_example(path)


def test_calls_that_tests_of_tiling_expect_to_succeed_become_cases(root: Path) -> None:
    (root / "math/twice/tests/st/twice.csv").unlink()
    path = root / "math/twice/tests/ut/op_host/test_twice_tiling.cpp"
    path.parent.mkdir(parents=True)
    path.write_text(_TILING_TEST, encoding="utf-8")
    assert len(list(tiling_tests(path))) == 1
    definition = read_opdef(_DEFINITION.replace("CHIP", "ascend910b"), "twice_def.cpp", "Twice")
    notes: list[str] = []
    (case,) = proposals(root / "math/twice", definition, notes.append)
    assert case.where == "tests/ut/op_host/test_twice_tiling.cpp:3"
    assert case.inputs[0].shapes == ((8, 64),)
    assert case.inputs[0].dtype is DType.FLOAT32
    assert case.attributes == {"scale": 3.0}


_GOLDEN = """
import numpy as np
__golden__ = {"kernel": {"twice": "twice_golden"}}
def twice_golden(x, scale=2.0, **kwargs):
    return [np.asarray(x * scale)]
"""


def _imported(root: Path, target: Path, golden: str) -> str:
    """Import the miniature operator with a golden.py; return its manifest."""
    script = root / "math/twice/tests/assets/golden.py"
    script.parent.mkdir(parents=True)
    script.write_text(golden, encoding="utf-8")
    write_library_operator(root / "math/twice", root, target)
    return (target / "op.toml").read_text(encoding="utf-8")


def test_golden_py_says_what_is_right(root: Path, tmp_path: Path) -> None:
    manifest = _imported(root, tmp_path / "made", _GOLDEN)
    assert 'reference = "baseline"' not in manifest
    assert "twice.csv:3: SyntaxError" in manifest  # the broken row is told, the other one is imported
    for variant in range(2):
        (given,) = (tmp_path / "made/data").glob(f"*/inputs/{variant}/x.npy")
        (expected,) = (tmp_path / "made/data").glob(f"*/outputs/{variant}/y.npy")
        assert np.array_equal(np.load(expected), np.float32(3.0) * np.load(given))


@pytest.mark.parametrize(
    ("golden", "told"),
    [
        (_GOLDEN.replace("x * scale", "x * scales"), "golden.py:5: NameError"),
        ("import no_such_package\n" + _GOLDEN, "needs no_such_package (pip install no_such_package)"),
        (_GOLDEN.replace("x * scale", "x[:3] * scale"), "gives y the shape ((3,),), the case says ((64,),)"),
        (_GOLDEN.replace("x * scale", "x / np.float32(0)"), "golden.py gives y without one finite value"),
        ("value = 1\n", "no __golden__ table"),
    ],
)
def test_a_golden_py_that_fails_is_told_and_sources_are_the_reference(
    root: Path, tmp_path: Path, golden: str, told: str
) -> None:
    manifest = _imported(root, tmp_path / "made", golden)
    assert 'reference = "baseline"' in manifest
    assert told in manifest


def test_golden_py_may_call_that_of_a_sibling(root: Path, tmp_path: Path) -> None:
    sibling = root / "math/thrice/golden.py"
    sibling.parent.mkdir()
    sibling.write_text("def scaled(x, scale):\n    return x * scale\n", encoding="utf-8")
    manifest = _imported(
        root,
        tmp_path / "made",
        "import runpy\n"
        f"scaled = runpy.run_path({str(sibling)!r})['scaled']\n"
        + _GOLDEN.replace("x * scale", "scaled(x, scale)"),
    )
    assert 'reference = "baseline"' not in manifest


def test_golden_py_may_be_marked_for_the_test_framework(root: Path, tmp_path: Path) -> None:
    marked = _GOLDEN.replace("def twice_golden", '@register_golden(["twice"])\ndef twice_golden')
    assert 'reference = "baseline"' not in _imported(root, tmp_path / "made", marked)


def test_outputs_of_four_bits_are_stored_as_bytes(tmp_path: Path) -> None:
    row = stored(tmp_path / "out.npy", np.array([-8, 0, 7]).astype(ml_dtypes.int4))
    assert row["shape"] == [3]
    assert np.load(row["file"]).tolist() == [-8, 0, 7]
    with pytest.raises(TypeError, match="an output of type str"):
        stored(tmp_path / "out.npy", "no number")


def test_what_is_not_read_is_said_where_there_is_no_reference(root: Path, tmp_path: Path) -> None:
    data = root / "math/twice/tests/st/gen_data.py"
    data.parent.mkdir(parents=True, exist_ok=True)
    data.write_text("", encoding="utf-8")
    write_library_operator(root / "math/twice", root, tmp_path / "made")
    first = (tmp_path / "made/op.toml").read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# {NO_REFERENCE}its authors left no golden.py; its gen_data.py is not read"


def test_a_cmake_list_that_is_not_closed_is_told_with_its_line(root: Path) -> None:
    lists = root / "math/twice/CMakeLists.txt"
    lists.write_text("# twice\nadd_all_modules_sources(OPTYPE twice\n", encoding="utf-8")
    with pytest.raises(OperatorFormatError, match=r"CMakeLists.txt:2: add_all_modules_sources"):
        tiling_sources(root / "math/twice")


def test_links_out_of_the_checkout_are_told(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (root / "math/twice").rename(outside / "twice")
    (root / "math/twice").symlink_to(outside / "twice")
    with pytest.raises(OperatorFormatError, match="symbolic link out of the checkout"):
        read_library_operator(operator_folders(root)["twice"], root)


def test_headers_behind_links_out_of_the_checkout_are_told(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "sizes.h"
    header = root / "common/inc/op_host/sizes.h"
    header.rename(outside)
    header.symlink_to(outside)
    with pytest.raises(OperatorFormatError, match="leads out of the checkout"):
        read_library_candidate(read_library_operator(root / "math/twice", root))


def test_the_list_of_cann_today_is_complete() -> None:
    listed = imported.today_operators()
    assert len(listed) >= 100
    assert {each.library for each in listed.values()} == {"ops-math", "ops-nn", "ops-transformer"}
    assert {each.level for each in listed.values()} == {1, 2, 3}
    assert all(len(each.commit) == 40 and int(each.digest, 16) >= 0 for each in listed.values())


def test_cann_today_refuses_other_versions_of_its_operators(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_GYM_CACHE", str(tmp_path_factory.mktemp("cache")))
    suite, index = imported.import_library(root, [], lambda *_: None, 1)
    assert index.ready() == ["twice"]
    sources = read_library_candidate(read_library_operator(root / "math/twice", root))
    chosen = imported.TodayOperator(
        library=suite, name="twice", level=3, digest=sources.digest[:16], commit="c" * 40
    )

    def listed(operator: imported.TodayOperator) -> None:
        for module in (imported, loader):
            monkeypatch.setattr(module, "today_operators", lambda: {"twice": operator, "other": operator})

    listed(chosen)
    assert loader.load_operator("cann-today/twice").level == 3
    listed(chosen.model_copy(update={"digest": "0" * 16}))
    with pytest.raises(OperatorFormatError, match=f"check out commit {'c' * 40} of {suite}"):
        loader.load_operator("cann-today/twice")


_INFER = """#include "register/op_impl_registry.h"
#include "op_host/infershape_broadcast_util.h"
static ge::graphStatus Infer(gert::InferShapeContext *context) {
    gert::Shape *out = context->GetOutputShape(0);
    *out = *context->GetInputShape(0);
    out->AppendDim(static_cast<int64_t>(*context->GetAttrs()->GetFloat(0)));
    return ge::GRAPH_SUCCESS;
}
IMPL_OP_INFERSHAPE(Twice).InferShape(Infer);
"""


def test_the_operators_own_function_says_shapes_that_no_test_does(root: Path) -> None:
    (root / "math/twice/tests/st/twice.csv").write_text(
        _HEADER + "a,\"((4, 8),)\",\"('float32',)\",,,{'scale': 3.0},\n", encoding="utf-8"
    )
    definition = root / "math/twice/op_host/twice_def.cpp"
    text = '#include "register/op_def_registry.h"\nnamespace ops {\n' + _DEFINITION.replace(
        "CHIP", "ascend910b"
    )
    text = text.replace("class Twice : public OpDef {", "class Twice : public OpDef {\npublic:") + "}\n"
    definition.write_text(text, encoding="utf-8")
    (root / "math/twice/op_host/twice_infershape.cpp").write_text(_INFER, encoding="utf-8")
    operator = read_library_operator(root / "math/twice", root)
    described = read_opdef(_DEFINITION, "twice")
    notes: list[str] = []
    (found,) = proposals(operator.folder, described, notes.append)
    shapes = OutputShapes(operator, described, notes.append)
    completed = shapes.completed(found, [[np.zeros((4, 8), np.float32)]])
    assert notes == []
    assert completed.outputs[0].shapes == ((4, 8, 3),)
    assert shapes.completed(completed, []) is completed

    (root / "math/twice/op_host/twice_infershape.cpp").write_text(
        _INFER.replace("return ge::GRAPH_SUCCESS", "return ge::GRAPH_FAILED"), encoding="utf-8"
    )
    refusing = OutputShapes(operator, described, notes.append)
    assert refusing.completed(found, [[np.zeros((4, 8), np.float32)]]) is found
    assert "the InferShape function returned GRAPH_FAILED" in notes[0]


def test_numbers_of_a_call_are_cast_to_what_the_operator_takes() -> None:
    text = _DEFINITION.replace(
        'this->Output("y")',
        'this->Input("value").ParamType(REQUIRED).DataType({ge::DT_FLOAT});\n        this->Output("y")',
    )
    tensor = RecordedTensor(acl_dtype=0, shape=(4,), contiguous=True, file="tensor1.bin", number=1)
    number = RecordedTensor(acl_dtype=11, shape=(1,), contiguous=True, file="tensor2.bin", number=2)
    arguments = [
        CallArgument(kind="tensor", tensors=(tensor,)),
        CallArgument(kind="scalar", tensors=(number,)),
        CallArgument(kind="tensor", tensors=(tensor,)),
    ]
    found = recorded_case(read_opdef(text, "twice"), arguments, "aclnnTwice", "here")
    assert [each.dtype for each in found.inputs] == [DType.FLOAT32, DType.FLOAT32]


_FAKED_CONTEXT = """
TEST_F(Twice, right) {
    gert::StorageShape x = {{8, 64}, {8, 64}};
    gert::StorageShape row = {{64,}, {64,}};
    auto holder = gert::TilingContextFaker().NodeIoNum(2, 1).IrInstanceNum({1, 0, 1})
        .InputShapes({&x, &row}).OutputShapes({&x})
        .NodeInputTd(0, ge::DT_FLOAT16, ge::FORMAT_ND, ge::FORMAT_ND)
        .NodeInputTd(1, ge::DT_FLOAT, ge::FORMAT_ND, ge::FORMAT_ND)
        .NodeOutputTd(0, ge::DT_FLOAT16, ge::FORMAT_ND, ge::FORMAT_ND)
        .NodeAttrs({{"scale", AnyValue::CreateFrom<float>(0.5f)}}).Build();
    EXPECT_EQ(tiling_func(context), ge::GRAPH_SUCCESS);
}
TEST_F(Twice, refused) {
    gert::StorageShape x = {{1}, {1}};
    auto holder = gert::TilingContextFaker().InputShapes({&x}).OutputShapes({&x})
        .NodeInputTd(0, ge::DT_FLOAT, ge::FORMAT_ND, ge::FORMAT_ND)
        .NodeOutputTd(0, ge::DT_FLOAT, ge::FORMAT_ND, ge::FORMAT_ND).Build();
    EXPECT_EQ(tiling_func(context), ge::GRAPH_FAILED);
}
"""


def test_contexts_that_are_set_up_call_by_call_say_a_case(tmp_path: Path) -> None:
    path = tmp_path / "test_twice_tiling.cpp"
    path.write_text(_FAKED_CONTEXT, encoding="utf-8")
    ((inputs, outputs, attributes, line),) = faked_contexts(path)
    assert inputs == [(0, (8, 64), "float16"), (2, (64,), "float32")]
    assert outputs == [(0, (8, 64), "float16")]
    assert (attributes, line) == ({"scale": 0.5}, 5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_values_are_drawn_within_their_type(dtype: str) -> None:
    tensor = ProposedTensor(((64,),), DType(dtype), -1e308, 1e308)
    (drawn,) = library._drawn(tensor, np.random.default_rng(0))
    assert np.isfinite(drawn.astype(np.complex128)).all()
    assert np.abs(drawn.astype(np.complex128)).max() > 100.0


def test_an_input_py_beside_draws_what_golden_py_expects(root: Path, tmp_path: Path) -> None:
    assets = root / "math/twice/tests/assets"
    assets.mkdir(parents=True)
    (assets / "golden.py").write_text(_GOLDEN, encoding="utf-8")
    (assets / "input.py").write_text(
        "import numpy as np\n"
        "def drawn(x, **_):\n    return [np.sort(x).reshape(-1, 1)]\n"
        "__input__ = {'kernel': {'twice': 'drawn'}}\n",
        encoding="utf-8",
    )
    write_library_operator(root / "math/twice", root, tmp_path / "made")
    (given,) = (tmp_path / "made/data").glob("*/inputs/0/x.npy")
    (expected,) = (tmp_path / "made/data").glob("*/outputs/0/y.npy")
    assert (np.diff(np.load(given)) >= 0).all()
    assert np.array_equal(np.load(expected), np.float32(3.0) * np.load(given))


def test_proposals_are_tried_until_golden_py_answers(root: Path, tmp_path: Path) -> None:
    rows = [f"""r{n},"(({n},),)","('float32',)",,,{{'scale': 3.0}},\n""" for n in range(30, 60)]
    (root / "math/twice/tests/st/twice.csv").write_text(_HEADER + "".join(rows), encoding="utf-8")
    picky = _GOLDEN.replace("return", "assert x.size < 34\n    return")
    manifest = _imported(root, tmp_path / "made", picky)
    assert [f'id = "float32_{n}_{place}"' in manifest for place, n in enumerate((32, 33, 30))] == [True] * 3


def test_floats_of_eight_bits_are_no_output_of_this_chip(tmp_path: Path) -> None:
    for dtype in (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn):
        with pytest.raises(TypeError, match="an output of type float8"):
            stored(tmp_path / "out.npy", np.zeros(3, dtype))


def test_the_column_is_that_of_the_outputs_which_a_case_says() -> None:
    text = _DEFINITION.replace("CHIP", "ascend910b").replace(
        "{ge::DT_FLOAT}", "{ge::DT_FLOAT, ge::DT_FLOAT}", 1
    )
    text = text.replace(
        '("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT})',
        '("y").ParamType(REQUIRED).DataType({ge::DT_INT8, ge::DT_INT4})',
    )
    definition = read_opdef(text, "twice_def.cpp", "Twice")
    given = (ProposedTensor(((4,),), DType.FLOAT32),)
    for said, expected in ((DType.INT4, DType.INT4), (DType.INT8, DType.INT8), (DType.BOOL, DType.INT8)):
        draft = CaseDraft("a case", given, (ProposedTensor(((4,),), said),), {})
        assert output_dtypes(definition, draft) == [expected]


def test_a_sweep_measures_only_what_it_is_asked_for() -> None:
    to_measure = fidelity_benchmark("library_coverage").to_measure
    right, stopped = {"class": "right"}, {"class": "not reached"}
    assert [to_measure(row, "twice", [], []) for row in (None, right, stopped)] == [True, False, True]
    assert [to_measure(row, "twice", [], ["twice"]) for row in (None, right, stopped)] == [True] * 3
    assert [to_measure(row, "twice", [], ["thrice"]) for row in (None, right, stopped)] == [False] * 3
    assert [to_measure(row, "twice", ["wrong"], ["twice"]) for row in (right, stopped)] == [False, True]


def test_four_bits_are_written_and_read_as_bytes(tmp_path: Path) -> None:
    tensor = TensorSpec(
        name="y", dtype=DType.INT4, shapes=((3,),), values=ValueRange(kind="file", file="data/inputs/y.npy")
    )
    given = np.array([-8, 0, 7]).astype(ml_dtypes.int4)
    assert write_arrays(tmp_path / "data", "inputs", tensor, [[given]]) == "data/inputs/y.npy"
    assert np.array_equal(read_data_file(tensor, 0, tmp_path), given)
    np.save(tmp_path / "data/inputs/y.npy", np.array([-9, 0, 7], np.int8))
    with pytest.raises(OperatorFormatError, match="it has -9 to 7"):
        read_data_file(tensor, 0, tmp_path)


def test_the_elements_of_a_tuple_in_a_json_file_are_one_attribute(root: Path) -> None:
    text = _DEFINITION.replace('"scale").Float(2.0)', '"sizes").AttrType(REQUIRED).ListInt()')
    definition = read_opdef(text.replace("CHIP", "ascend910b"), "twice_def.cpp", "Twice")
    sizes = [{"name": "sizes", "type": "attr_tuple", "range_values": each} for each in (1, 13, 14)]
    x = {"name": "x", "type": "tensor", "dtype": "fp32", "shape": [4], "range_values": [0, 1]}
    path = root / "math/twice/tests/st/atk_twice.json"
    path.write_text(json.dumps([{"inputs": [x, sizes]}, {"inputs": [x, sizes[:1]]}]), encoding="utf-8")
    (root / "math/twice/tests/st/twice.csv").unlink()
    found = proposals(root / "math/twice", definition, pytest.fail)
    assert [each.attributes["sizes"] for each in found] == [[1, 13, 14], [1]]
