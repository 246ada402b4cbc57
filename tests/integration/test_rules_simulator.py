"""Each rule on an operator where it helps: the rewrite stays correct and is faster, the way back is slower.

The subjects are small operators of ``tests/operators``, written so that one thing at a time can be improved,
and of the built-in suite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from rewritten import rule_named
from simulated import Workbench

import npu_daemon.backends.simulator as simulator_module
from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.rule import Rule
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.simulator.chips import Chip, load_chip

pytestmark = pytest.mark.slow

OPERATORS = Path(__file__).parents[1] / "operators"
HELPS = 0.999  # of the latency before, at most; launch and start are most of the latency of small cases

Benches = Callable[[str, str], "Bench"]


@dataclass(frozen=True)
class Trial:
    """A rule and where it is tried.

    Attributes:
        rule: its name.
        operator: folder of ``tests/operators``, or ``core/<name>``.
        case_id: the case.
        site: part of the site's label; by default the first site is taken.
        rewind: part of the choice's label of the inverse, where that does not restore the very sources.
        choice: part of the choice's label; by default the first forward one is taken.
    """

    rule: str
    operator: str
    case_id: str
    site: str = ""
    rewind: str = ""
    choice: str = ""


TRIALS = (
    Trial("tile_size", "shift", "aligned"),
    Trial("kernel_tile_size", "shift", "aligned"),
    Trial("shared_tile_size", "columns", "rows"),
    Trial("tile_alignment", "power", "aligned"),
    Trial("split_alignment", "power", "ragged"),
    Trial("ub_reserve", "power", "aligned"),
    Trial("block_dim", "columns", "rows", rewind="-> 20"),
    Trial("block_dim_from_platform", "columns", "rows"),
    Trial("core_share", "power", "few"),
    Trial("core_work", "power", "few"),
    Trial("single_core_limit", "power", "small"),
    Trial("least_core_work", "power", "few", choice=" / 16"),
    Trial("tiling_key", "power", "aligned"),
    Trial("strided_copy", "columns", "rows"),
    Trial("bank_padding", "power", "aligned"),
    Trial("buffer_order", "power", "aligned", choice="the last 2 first"),
    Trial("in_place_compute", "columns", "rows"),
)


class Bench:
    """An operator and a case, with the latency of what was measured before."""

    def __init__(self, workbench: Workbench) -> None:
        self.baseline = workbench.spec.baseline
        self.latency_us = cache(workbench.latency_of_us)


@pytest.fixture(scope="module")
def benches(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Benches:
    data = tmp_path_factory.mktemp("data")

    @cache
    def bench(operator: str, case_id: str) -> Bench:
        folder = None if "/" in operator else OPERATORS / operator
        return Bench(Workbench(simulator, data, operator, case_id, op_dir=folder))

    return bench


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.rule)
def test_rule_helps_and_its_inverse_takes_that_back(trial: Trial, benches: Benches) -> None:
    bench = benches(trial.operator, trial.case_id)
    rule = rule_named(trial.rule)
    rewritten = _rewritten(rule, bench.baseline, trial.site, trial.choice, forward=True)
    assert bench.latency_us(rewritten) < HELPS * bench.latency_us(bench.baseline)
    rewound = _rewound(rule, rewritten, bench.baseline, trial.rewind)
    assert bench.latency_us(rewritten) < HELPS * bench.latency_us(rewound)


def test_part_of_ub_helps_where_each_core_has_few_tiles(benches: Benches) -> None:
    bench = benches("power", "aligned")
    before = bench.baseline
    for name in (
        *["ub_reserve"] * 4,
        "tile_alignment",
        "tiling_key",
    ):  # until tiles are long, and soon computed
        before = _rewritten(rule_named(name), before, "", forward=True)
    rule = rule_named("ub_share")
    rewritten = _rewritten(rule, before, "", forward=True)
    assert bench.latency_us(rewritten) < HELPS * bench.latency_us(before)
    assert _rewritten(rule, rewritten, "", "all of UB", forward=False) == before


def test_passing_by_l2_helps_where_tensors_are_larger_than_it(
    simulator: SimulatorBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve megabytes through an L2 of one megabyte: with all of its 192 the test would take minutes."""
    monkeypatch.setattr(simulator_module, "load_chip", _with_small_l2)
    bench = Bench(Workbench(simulator, tmp_path, "power", "aligned", op_dir=OPERATORS / "power"))
    before = bench.baseline
    for name in ("tile_alignment", "tiling_key"):  # until nothing but bandwidth counts
        before = _rewritten(rule_named(name), before, "", forward=True)
    rule = rule_named("l2_bypass")
    rewritten = _rewritten(rule, before, "all 3 tensors", forward=True)
    assert bench.latency_us(rewritten) < HELPS * bench.latency_us(before)
    assert _rewritten(rule, rewritten, "all 3 tensors", forward=False) == before


def _with_small_l2(name: str) -> Chip:
    chip = load_chip(name)
    small = chip.geometry["l2_bytes"].model_copy(update={"value": 2**20})
    return chip.model_copy(update={"geometry": {**chip.geometry, "l2_bytes": small}})


def _rewritten(
    rule: Rule, candidate: Candidate, site_label: str, choice_label: str = "", *, forward: bool
) -> Candidate:
    site, choice = next(
        (site, choice)
        for site in rule.sites(candidate)
        for choice in site.choices
        if site_label in site.label and choice_label in choice.label and choice.forward == forward
    )
    return rule.apply(candidate, site, choice)


def _rewound(rule: Rule, rewritten: Candidate, baseline: Candidate, choice_label: str) -> Candidate:
    """Return the baseline if the rule's inverse can restore it, else what its first choice makes."""
    assert rule.inverse is not None
    back = rule_named(rule.inverse)
    ways = [back.apply(rewritten, site, choice) for site in back.sites(rewritten) for choice in site.choices]
    if baseline in ways:
        return baseline
    return next(
        back.apply(rewritten, site, choice)
        for site in back.sites(rewritten)
        for choice in site.choices
        if choice_label in choice.label and not choice.forward
    )
