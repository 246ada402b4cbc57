from __future__ import annotations

import math
from pathlib import Path

import pytest
from suite_folders import HOST, KERNEL, write_files, write_operator

from ascend_gym.core.errors import MisuseError, OperatorFormatError, OperatorNotFoundError
from ascend_gym.core.records import DType, OpSpec
from ascend_gym.suite.loader import SPLITS, folder_digest, list_operators, load_operator, split_of

CORE = ["add", "exp", "foreach_add", "gather", "gelu", "muls", "rms_norm", "softmax"]


SPECS = list_operators()


def test_the_core_suite_has_operators_of_all_levels_types_and_many_categories() -> None:
    assert set(CORE) <= {spec.name for spec in SPECS}
    assert len(SPECS) >= 40
    assert {spec.level for spec in SPECS} == {1, 2, 3}
    assert len({spec.category for spec in SPECS}) >= 15
    dtypes = {
        tensor.dtype for spec in SPECS for case in spec.cases for tensor in (*case.inputs, *case.outputs)
    }
    assert dtypes >= {DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.INT8, DType.INT32}


def test_every_category_of_the_core_suite_is_in_one_part_of_the_split() -> None:
    listed = [category for categories in SPLITS.values() for category in categories]
    assert sorted(listed) == sorted({spec.category for spec in SPECS})
    assert split_of("sorting") == "test"
    assert split_of("none of these") is None


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_cases_are_few_and_one_of_them_is_unaligned(spec: OpSpec) -> None:
    assert 2 <= len(spec.cases) <= 4
    extents = [
        extent for case in spec.cases for tensor in case.outputs for s in tensor.shapes for extent in s
    ]
    extents += [
        extent for case in spec.cases for tensor in case.inputs for s in tensor.shapes for extent in s
    ]
    assert any(extent % 16 for extent in extents if extent > 16), "no unaligned case"


@pytest.mark.parametrize("name", CORE)
def test_core_cases_are_realistic(name: str) -> None:
    spec = load_operator(name)
    assert 2 <= len(spec.cases) <= 3
    assert max(case.traffic_bytes for case in spec.cases) >= 16 * 2**20
    dtypes = {tensor.dtype for case in spec.cases for tensor in case.outputs}
    assert dtypes == {DType.FLOAT16, DType.FLOAT32}
    last_axes = [shape[-1] for case in spec.cases for t in case.outputs for shape in t.shapes]
    assert any(extent % 16 for extent in last_axes), "no case with an unaligned last axis"
    outputs = sum(
        math.prod(shape) for case in spec.cases for tensor in case.outputs for shape in tensor.shapes
    )
    assert outputs <= 24e6


def test_add_has_the_benchmark_case() -> None:
    case = load_operator("core/add").case("fp16_8192x2048")
    assert case.inputs[0].shapes == ((8192, 2048),)
    assert case.inputs[0].dtype is DType.FLOAT16


@pytest.mark.parametrize("name", ["gelu", "core/gelu"])
def test_bare_and_qualified_names_give_the_same_operator(name: str) -> None:
    spec = load_operator(name)
    assert (spec.op_id, spec.op_type) == ("core/gelu", "Gelu")
    assert spec == load_operator("gelu")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gelo", "did you mean gelu"),
        ("core/softmx", "did you mean softmax"),
        ("zzz", "known operators: adam_w, add"),
    ],
)
def test_a_missing_operator_is_reported_with_near_matches(name: str, hint: str) -> None:
    with pytest.raises(OperatorNotFoundError, match=hint):
        load_operator(name)


def test_a_missing_suite_is_reported() -> None:
    with pytest.raises(OperatorNotFoundError, match=r"no suite 'paper'.*core"):
        load_operator("paper/gelu")
    with pytest.raises(OperatorNotFoundError, match="no suite 'paper'"):
        list_operators("paper")


@pytest.mark.parametrize("name", ["twice", "local/twice"])
def test_a_folder_of_ones_own_is_local(tmp_path: Path, name: str) -> None:
    spec = load_operator(name, op_dir=write_operator(tmp_path))
    assert (spec.op_id, spec.op_type, spec.auto_sync) == ("local/twice", "Twice", True)
    assert spec.folder == str(tmp_path.resolve())
    assert spec.baseline.tiling_text == HOST
    assert spec.baseline.kernel_text == KERNEL


def test_names_and_folders_must_fit_together(tmp_path: Path) -> None:
    write_operator(tmp_path)
    with pytest.raises(MisuseError, match="say 'local/twice'"):
        load_operator("core/twice", op_dir=tmp_path)
    with pytest.raises(MisuseError, match="pass its folder as op_dir"):
        load_operator("local/twice")
    with pytest.raises(OperatorNotFoundError, match="no operator folder"):
        load_operator("twice", op_dir=tmp_path / "nowhere")


def test_a_folder_that_says_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorFormatError, match=r"needs op\.toml and reference\.py"):
        load_operator("twice", op_dir=tmp_path)


def test_a_folder_without_reference_is_refused(tmp_path: Path) -> None:
    (write_operator(tmp_path) / "reference.py").unlink()
    with pytest.raises(OperatorFormatError, match=r"reference\.py is missing"):
        load_operator("twice", op_dir=tmp_path)


@pytest.mark.parametrize("path", ["op.toml", "reference.py", "op_host/twice.cpp", "op_kernel/twice.cpp"])
def test_the_digest_covers_every_file_that_matters(tmp_path: Path, path: str) -> None:
    write_operator(tmp_path)
    before = folder_digest(tmp_path)
    with (tmp_path / path).open("a", encoding="utf-8") as file:
        file.write("\n")
    assert folder_digest(tmp_path) != before


def test_the_digest_ignores_what_python_leaves_behind(tmp_path: Path) -> None:
    before = folder_digest(write_operator(tmp_path))
    write_files(tmp_path, {"__pycache__/reference.cpython-311.pyc": "x", "notes.txt": "y"})
    assert folder_digest(tmp_path) == before


def test_only_sources_that_a_launch_needs_are_taken(tmp_path: Path) -> None:
    write_operator(tmp_path)
    extra = {
        "op_host/twice_tiling.h": "// tiling data",
        "op_host/aclnn_twice.cpp": "gert::TilingContext",
        "op_host/twice_l0.cpp": "gert::TilingContext",
        "op_host/CMakeLists.txt": "x",
        "op_kernel/twice_base.hpp": "// base",
        "op_kernel/.gitkeep": "",
        "op_kernel/detail/part.h": "// part",
    }
    baseline = load_operator("twice", op_dir=write_files(tmp_path, extra)).baseline
    assert [file.path for file in baseline.host.files] == ["op_host/twice.cpp", "op_host/twice_tiling.h"]
    assert [file.path for file in baseline.kernel.files] == [
        "op_kernel/detail/part.h",
        "op_kernel/twice.cpp",
        "op_kernel/twice_base.hpp",
    ]


def test_the_tiling_file_is_preferred_as_main(tmp_path: Path) -> None:
    write_operator(tmp_path)
    extra = {"op_host/twice_tiling.cpp": HOST, "op_host/twice_def.cpp": "class Twice : public OpDef {};"}
    baseline = load_operator("twice", op_dir=write_files(tmp_path, extra)).baseline
    assert baseline.host.main == "op_host/twice_tiling.cpp"


def test_the_only_file_with_the_mark_is_main_whatever_its_name(tmp_path: Path) -> None:
    write_operator(tmp_path, host="// nothing here", kernel="// nor here")
    extra = {"op_host/other.cpp": HOST, "op_kernel/entry.cpp": KERNEL}
    baseline = load_operator("twice", op_dir=write_files(tmp_path, extra)).baseline
    assert (baseline.host.main, baseline.kernel.main) == ("op_host/other.cpp", "op_kernel/entry.cpp")


def test_an_ambiguous_main_file_is_refused_until_named(tmp_path: Path) -> None:
    folder = write_operator(tmp_path, kernel="// nothing here")
    write_files(folder, {"op_kernel/a.cpp": KERNEL, "op_kernel/b.cpp": KERNEL})
    with pytest.raises(OperatorFormatError, match=r"\[operator\] kernel.*a\.cpp.*b\.cpp"):
        load_operator("twice", op_dir=folder)
    manifest = (folder / "op.toml").read_text(encoding="utf-8")
    named = manifest.replace("level = 1", 'level = 1\nkernel = "op_kernel/b.cpp"')
    write_files(folder, {"op.toml": named})
    assert load_operator("twice", op_dir=folder).baseline.kernel.main == "op_kernel/b.cpp"
    write_files(folder, {"op.toml": named.replace("b.cpp", "c.cpp")})
    with pytest.raises(OperatorFormatError, match=r"op_kernel/c\.cpp' is not among"):
        load_operator("twice", op_dir=folder)


def test_a_side_without_sources_is_refused(tmp_path: Path) -> None:
    folder = write_operator(tmp_path)
    (folder / "op_kernel" / "twice.cpp").unlink()
    with pytest.raises(OperatorFormatError, match="no C\\+\\+ sources below op_kernel/"):
        load_operator("twice", op_dir=folder)


def test_a_source_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    folder = write_operator(tmp_path)
    (folder / "op_kernel" / "twice.cpp").write_bytes(b"// \xff\xfe")
    with pytest.raises(OperatorFormatError, match=r"twice\.cpp: cannot be read as UTF-8"):
        load_operator("twice", op_dir=folder)
