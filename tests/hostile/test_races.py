"""Kernels that are right by luck: each is caught, by name of both calls, and its honest twin is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from probe_operator import CORPUS, MODES, write_operator

from ascend_gym.core.records import EvalResult, MeasureProtocol, OpSpec
from ascend_gym.core.status import Status
from ascend_gym.core.toml_file import read_toml
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import request_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator

pytestmark = pytest.mark.slow

_GROUP_SIZE = 12

_ENTRY = """
extern "C" __global__ __aicore__ void probe(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{{
    Probe probe(x, y, workspace);
{branches}
}}
"""


@dataclass(frozen=True)
class Expectation:
    """What must become of the faulty kernel.

    Attributes:
        status: how it ends.
        auto_sync: settings of automatic synchronisation under which it is faulty; under others it is correct.
        words: what the diagnostic must contain.
        task_type: of kernels that need other cores than vector cores, such as ``KERNEL_TYPE_MIX_AIC_1_1``.
    """

    status: Status
    auto_sync: tuple[str, ...]
    words: tuple[str, ...]
    task_type: str | None


@cache
def _names() -> list[str]:
    return sorted(path.parent.name for path in CORPUS.glob("*/expect.toml"))


@cache
def _expectation(name: str) -> Expectation:
    table = read_toml(CORPUS / name / "expect.toml")
    return Expectation(
        Status(table["status"]), tuple(table["auto_sync"]), tuple(table["words"]), table.get("task_type")
    )


@cache
def _group_of(name: str) -> tuple[bool, int]:
    """Return what a kernel is built with: some of those for the same kind of cores."""
    mixed = _is_mixed(name)
    return mixed, [other for other in _names() if _is_mixed(other) == mixed].index(name) // _GROUP_SIZE


def _is_mixed(name: str) -> bool:
    return _expectation(name).task_type is not None


def _case_id(name: str, *, ordered: bool) -> str:
    return f"{name}-{'true' if ordered else 'false'}"


def _write_corpus(folder: Path, auto_sync: str, group: tuple[bool, int]) -> Path:
    """Write one operator that holds the kernels of a group, twice each; its attribute says which one runs."""
    sources, includes, branches, cases = {}, [], [], []
    names = [name for name in _names() if _group_of(name) == group]
    for index, name in enumerate(names):
        sources[f"{name}.h"] = (CORPUS / name / "kernel.h").read_text(encoding="utf-8")
        includes.append(f'#include "{name}.h"')
        for key, ordered in ((2 * index + 1, "false"), (2 * index + 2, "true")):
            task_type = _expectation(name).task_type
            if task_type is not None:
                branches.append(f"    KERNEL_TASK_TYPE({key}, {task_type});")
            branches.append(f"    if (TILING_KEY_IS({key})) {name}::Run<{ordered}>(probe);")
            cases.append((_case_id(name, ordered=ordered == "true"), key))
    if group[0]:
        for header in ("cube_probe.h", "matmul_probe.h"):
            sources[header] = (CORPUS / header).read_text(encoding="utf-8")
    sources["probe.cpp"] = "\n".join(includes) + _ENTRY.format(branches="\n".join(branches))
    return write_operator(folder, sources, cases, auto_sync)


class Corpus:
    """All kernels, some at a time in one library: a large one costs time when places are looked up."""

    def __init__(self, backend: SimulatorBackend, folder: Path) -> None:
        self._evaluator = InProcessEvaluator(backend, folder / "data")
        self._folder = folder
        self._specs: dict[tuple[str, tuple[bool, int]], OpSpec] = {}
        self._accepted: dict[tuple[str, tuple[bool, int]], set[str]] = {}

    def _spec(self, auto_sync: str, group: tuple[bool, int]) -> OpSpec:
        """Write an operator when it is first asked for; builds are cached."""
        if (auto_sync, group) not in self._specs:
            folder = self._folder / auto_sync / "-".join(map(str, group)) / "probe"
            op_dir = _write_corpus(folder, auto_sync, group)
            self._specs[auto_sync, group] = load_operator("probe", op_dir=op_dir)
        return self._specs[auto_sync, group]

    def run(self, name: str, *, ordered: bool, auto_sync: str) -> EvalResult:
        """Evaluate one kernel."""
        return self._evaluate(self._spec(auto_sync, _group_of(name)), [_case_id(name, ordered=ordered)])

    def accepts_twins(self, name: str, auto_sync: str) -> bool:
        """Evaluate the honest twins of a group at once; say whether this one is correct.

        ``False``: it is not, or comes after one that is not, where an evaluation ends.
        """
        key = auto_sync, _group_of(name)
        if key not in self._accepted:
            twins = [_case_id(each, ordered=True) for each in _names() if _group_of(each) == key[1]]
            cases = self._evaluate(self._spec(*key), twins).cases
            self._accepted[key] = {case.case_id for case in cases if case.status is Status.OK}
        return _case_id(name, ordered=True) in self._accepted[key]

    def _evaluate(self, spec: OpSpec, case_ids: Sequence[str]) -> EvalResult:
        self._evaluator.submit(request_for(spec, spec.baseline, MeasureProtocol(), tuple(case_ids)))
        ((_, result),) = self._evaluator.poll(timeout_s=60.0)
        return result


@pytest.fixture(scope="module")
def corpus(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus(simulator, tmp_path_factory.mktemp("races"))


def test_the_corpus_has_at_least_thirty_kernels() -> None:
    assert len(_names()) >= 30


@pytest.mark.parametrize("name", _names())
def test_the_faulty_kernel_is_caught(corpus: Corpus, name: str) -> None:
    expected = _expectation(name)
    for auto_sync in MODES:
        result = corpus.run(name, ordered=False, auto_sync=auto_sync)
        said = " ".join(str(diagnostic) for diagnostic in result.all_diagnostics)
        if auto_sync not in expected.auto_sync:
            assert result.status is Status.OK, said
            continue
        assert result.status is expected.status, said
        assert [word for word in expected.words if word not in said] == [], said
        if "race on" in said:
            assert said.count(" at op_kernel/") == 2, said


@pytest.mark.parametrize("auto_sync", MODES)
@pytest.mark.parametrize("name", _names())
def test_its_honest_twin_is_not(corpus: Corpus, name: str, auto_sync: str) -> None:
    if corpus.accepts_twins(name, auto_sync):
        return
    result = corpus.run(name, ordered=True, auto_sync=auto_sync)
    assert result.status is Status.OK, [str(diagnostic) for diagnostic in result.all_diagnostics]
