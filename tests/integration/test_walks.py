"""The three walks of docs/architecture.md, each taken once: what the tables name is called, in that order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
from simulated import Workbench

import ascend_gym
from ascend_gym.core.config import ENV_CACHE, ENV_DAEMON
from ascend_gym.search.journal import read_journal
from npu_daemon.backends.simulator import SimulatorBackend

ROOT = Path(__file__).parents[2]
INSTALLED = Path(ascend_gym.__file__).parents[1]  # the code that runs may be another copy than this one
SIMULATOR = "npu_daemon/simulator/"
TITLES = {
    "step": "From `env.step` to a reward",
    "copy": "From `DataCopy` to cycles",
    "search": "From `optimize --method ascend-optimizer`",
}
_ROW = re.compile(r"\| \d+ \| `([^`]+)` \| `([^`]+)` \|")

# Notes each call of a function of the walk, in every process of the step: Python imports this at its start.
HOOK = """
import json, os, sys, threading, time
wanted = {tuple(each) for each in json.loads(os.environ["WALK"])}
log = open(os.path.join(os.environ["WALK_OUT"], str(os.getpid())), "w", buffering=1)
def note(frame, event, _):
    code = frame.f_code
    if event == "call" and (code.co_filename, code.co_name) in wanted:
        log.write(json.dumps([time.monotonic_ns(), code.co_filename, code.co_name]) + "\\n")
sys.setprofile(note)
threading.setprofile(note)
"""
STEP = """
import time
import gymnasium, numpy
import ascend_gym
env = gymnasium.make("AscendOp-v0", operator="muls", actions="rules", cases=1, disable_env_checker=True)
_, info = env.reset(seed=0)
began_ns = time.monotonic_ns()
_, reward, *_, info = env.step(int(numpy.flatnonzero(info["action_mask"])[0]))
print(began_ns, reward, info["status"])
env.close()
"""


class Hop(NamedTuple):
    """A row of a walk: a file, and the bare name of its function."""

    path: str
    name: str

    @property
    def code(self) -> tuple[str, str]:
        return str(INSTALLED / self.path), self.name


def walk(which: str) -> list[Hop]:
    text = (ROOT / "docs/architecture.md").read_text("utf-8")
    section = text.partition(f"### {TITLES[which]}")[2].partition("\n### ")[0]
    folder = SIMULATOR if which == "copy" else ""
    hops = [Hop(folder + path, name.rpartition(".")[2]) for path, name in _ROW.findall(section)]
    assert len(hops) > 10
    return hops


def assert_in_order(hops: Sequence[Hop], called: Sequence[tuple[str, str]]) -> None:
    """Check that the calls contain the hops, in order."""
    left = iter(called)
    for number, hop in enumerate(hops, 1):
        assert hop.code in left, f"hop {number}, {hop.path} {hop.name}, is not called after those before it"


@contextmanager
def noted(hops: Sequence[Hop]) -> Iterator[list[tuple[str, str]]]:
    """Note the calls of the hops' functions in this process."""
    calls: list[tuple[str, str]] = []
    wanted = {hop.code for hop in hops}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = (frame.f_code.co_filename, frame.f_code.co_name)
        if event == "call" and code in wanted:
            calls.append(code)

    sys.setprofile(note)
    threading.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


@pytest.mark.slow
def test_from_a_step_to_a_reward(simulator_cache: Path, tmp_path: Path) -> None:
    """Agent, broker and worker are three processes; their clock is one."""
    hops = walk("step")
    assert len(hops) <= 20
    (tmp_path / "sitecustomize.py").write_text(HOOK)
    (out := tmp_path / "calls").mkdir()
    environment = {name: value for name, value in os.environ.items() if name != ENV_DAEMON}
    environment |= {
        ENV_CACHE: str(simulator_cache),
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{INSTALLED}",
        "WALK": json.dumps([hop.code for hop in hops]),
        "WALK_OUT": str(out),
    }
    done = subprocess.run(
        [sys.executable, "-c", STEP],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    began_ns, reward, status = done.stdout.split()
    assert (status, float(reward) != 0) == ("ok", True)
    calls = sorted(
        json.loads(line) for path in out.iterdir() for line in path.read_text().splitlines() if line
    )
    assert_in_order(hops, [(file, name) for at_ns, file, name in calls if at_ns >= int(began_ns)])


def test_from_a_copy_to_cycles(simulator: SimulatorBackend, tmp_path: Path) -> None:
    """Hops in C++ are defined where the table says; one more copy is one more on its pipe."""
    hops = walk("copy")
    for hop in hops:
        assert re.search(rf"\b{hop.name}\(", (ROOT / hop.path).read_text("utf-8")), hop
    bench = Workbench(simulator, tmp_path, "add", "fp32_2048x1024")
    copy = "AscendC::DataCopyPad(x1Local, x1Gm[offset], copyParams, padParams);"
    again = "AscendC::PipeBarrier<PIPE_MTE2>(); AscendC::DataCopy(x1Local, x1Gm[offset], count);"
    programs = [hop for hop in hops if hop.path.endswith(".py")]
    with noted(programs) as calls:
        once, twice = (
            bench.evaluate(bench.edited(kernel={copy: copies})).cases[0].profile
            for copies in (copy, f"{copy} {again}")
        )
    assert_in_order(programs * 2, calls)
    assert once is not None
    assert twice is not None
    ratio = twice.aiv_mte2_time / once.aiv_mte2_time
    assert 1.05 < ratio < 1.5  # three copies of a tile in place of two, the third of what is in L2 by then


def test_from_a_command_to_a_proposal_and_into_the_journal(run: Any, evaluator: Any, tmp_path: Path) -> None:
    hops = walk("search")
    command = ("optimize", "toy", "--op-dir", "toy", "--method", "ascend-optimizer", "--budget", 3)
    with noted(hops) as calls:
        status, _, err = run(*command, "--in-flight", 1, "--out", "run")
    assert status == 0, err
    assert_in_order(hops, calls)
    proposals = [each for each in read_journal(tmp_path / "run") if each["kind"] == "proposal"]
    assert [each["origin"]["kind"] for each in proposals[:2]] == ["baseline", "refine"]
    assert len(proposals) == 4
