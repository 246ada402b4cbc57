"""Importing a checkout: an index that points at it, operators found by name, reasons for the others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from suite_folders import MAIN_CPP, write_example_operator, write_files
from typer.testing import CliRunner

from ascend_gym.cli import app
from ascend_gym.core.config import ENV_CACHE, cache_root
from ascend_gym.core.errors import MisuseError, OperatorNotFoundError
from ascend_gym.suite import loader
from ascend_gym.suite.audit import insensitivities
from ascend_gym.suite.imported import operator_folders, paper_levels, read_index, register, select_operators
from ascend_gym.suite.loader import list_operators, load_operator, missing_requirements
from ascend_gym.suite.manifest import read_manifest
from ascend_gym.suite.oracle import reference_oracle


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with the operators ``twice``, ready, and ``broken``, and a cache root of its own.

    Example programs are compiled in the cache of the tests.
    """
    examples = cache_root() / "examples"
    examples.mkdir(exist_ok=True)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "examples").symlink_to(examples)
    monkeypatch.setenv(ENV_CACHE, str(tmp_path / "cache"))
    root = tmp_path / "checkout"
    write_example_operator(root / "src/math/twice")
    write_example_operator(root / "src/contrib/math/broken", main=MAIN_CPP.replace("aclnnTwice", "other"))
    write_files(root / "src/common", {"op_host/op_tiling/x.h": "", "inc/x.h": ""})
    return root


def test_operator_folders_are_those_of_categories_and_of_contributions(checkout: Path) -> None:
    assert operator_folders(checkout) == {
        "broken": checkout / "src/contrib/math/broken",
        "twice": checkout / "src/math/twice",
    }
    assert list(select_operators(checkout, ["twice", "twice"])) == ["twice"]
    with pytest.raises(MisuseError, match="no operators \\['thrice'\\] among its 2"):
        select_operators(checkout, ["thrice"])
    with pytest.raises(MisuseError, match="expected a checkout of cann-ops"):
        operator_folders(checkout / "src")


def test_what_keeps_a_folder_from_loading_is_one_line(checkout: Path) -> None:
    assert missing_requirements("twice", checkout / "src/math/twice") == ""
    reason = missing_requirements("broken", checkout / "src/contrib/math/broken")
    assert reason == "examples/AclNNInvocationNaive/main.cpp: no call of aclnn<Op>GetWorkspaceSize"


def test_a_module_that_gen_data_lacks_is_named(checkout: Path) -> None:
    folder = write_example_operator(
        checkout / "src/math/thrice", gen_data="import numpy\nimport no_such_one\n"
    )
    assert (
        missing_requirements("thrice", folder)
        == "its gen_data.py needs no_such_one (pip install no_such_one)"
    )


def test_imported_operators_are_found_by_name_and_nothing_is_copied(checkout: Path) -> None:
    with pytest.raises(OperatorNotFoundError):
        load_operator("twice")
    result = CliRunner().invoke(app, ["suite", "import", "--cann-ops", str(checkout)])
    assert result.exit_code == 0, result.output
    assert "cann-ops/twice: ready" in result.output
    assert "cann-ops/broken: needs examples/AclNNInvocationNaive/main.cpp: no call" in result.output
    for name in ("twice", "cann-ops/twice"):
        spec = load_operator(name)
        assert (spec.op_id, spec.folder) == ("cann-ops/twice", str(checkout / "src/math/twice"))
    assert [spec.op_id for spec in list_operators("cann-ops")] == ["cann-ops/twice"]
    assert not list((checkout.parent / "cache").rglob("twice.cpp"))


def test_an_installed_operator_comes_before_an_imported_one_of_the_same_name(checkout: Path) -> None:
    write_example_operator(checkout / "src/math/gelu")
    register(checkout, {"gelu": ""})
    assert load_operator("gelu").op_id == "core/gelu"


def test_operators_of_the_paper_are_a_suite_with_its_levels(checkout: Path) -> None:
    write_example_operator(checkout / "src/math/matmul_all_reduce")
    register(checkout, {"matmul_all_reduce": "", "twice": ""})
    (spec,) = list_operators("cann-ops-101")
    assert (spec.op_id, spec.level, spec.category) == ("cann-ops-101/matmul_all_reduce", 3, "math")
    assert (
        load_operator("cann-ops-101/matmul_all_reduce").folder_digest
        == load_operator("cann-ops/matmul_all_reduce").folder_digest
    )
    assert {spec.name: spec.level for spec in list_operators("cann-ops")} == {
        "matmul_all_reduce": 3,
        "twice": 2,
    }
    with pytest.raises(OperatorNotFoundError, match=r"no operator of level \[1\]"):
        list_operators("cann-ops-101", levels=[1])
    assert Counter(paper_levels().values()) == {1: 25, 2: 63, 3: 13}


def test_what_a_suite_leaves_out_is_named_with_the_reason(checkout: Path) -> None:
    register(checkout, {"broken": "a main.cpp", "twice": ""})
    assert loader.left_out("core") == {}
    assert loader.left_out("cann-ops") == {"broken": "needs a main.cpp"}
    assert loader.left_out("cann-ops-101") == dict.fromkeys(sorted(paper_levels()), "is not imported")
    listed = CliRunner().invoke(app, ["suite", "list", "--suite", "cann-ops"])
    assert "cann-ops/broken: left out: needs a main.cpp" in listed.stderr


def test_our_larger_cases_take_the_place_of_the_example_in_that_suite_alone(checkout: Path) -> None:
    write_example_operator(checkout / "src/math/cos")
    register(checkout, {"cos": ""})
    larger, example = load_operator("cann-ops-101/cos"), load_operator("cann-ops/cos")
    assert [case.case_id for case in larger.cases] == ["fp16_4096x2048", "fp32_1003x777"]
    assert [case.case_id for case in example.cases] == ["example"]
    assert larger.baseline == example.baseline


OWN = sorted(path for path in Path(loader.__file__).with_name("cann_ops_101").iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", OWN, ids=lambda folder: folder.name)
def test_each_of_our_larger_cases_is_whole(folder: Path) -> None:
    manifest = read_manifest(folder / "op.toml")
    assert manifest.operator.level == paper_levels()[folder.name]
    assert (manifest.operator.sources or "").endswith(f"/{folder.name}")
    small = min(manifest.cases(), key=lambda case: case.traffic_bytes)
    oracle = reference_oracle(folder)
    inputs = oracle.inputs(small, 0)
    assert insensitivities(oracle, small, inputs, oracle.expected(small, inputs)) == []


def test_imports_add_up_until_another_checkout_takes_over(checkout: Path, tmp_path: Path) -> None:
    register(checkout, {"twice": ""})
    assert read_index() == register(checkout, {"twice": ""})
    index = register(checkout, {"broken": "care"})
    assert (set(index.operators), index.ready()) == ({"twice", "broken"}, ["twice"])
    other = tmp_path / "other"
    write_example_operator(other / "src/math/twice")
    assert set(register(other, {"twice": ""}).operators) == {"twice"}
    assert read_index().root == str(other)


def test_a_damaged_index_says_what_to_do(checkout: Path) -> None:
    register(checkout, {"twice": ""})
    (checkout.parent / "cache" / "cann-ops.json").write_text("{", encoding="utf-8")
    with pytest.raises(MisuseError, match="import the checkout again"):
        load_operator("twice")
