"""The table of calls and the target sheet against the simulator: headers, a compiler, an empty kernel."""

import re
import subprocess
from itertools import chain
from pathlib import Path

import pytest
from simulated import Workbench

import npu_daemon.simulator
from ascend_gym.core.calls import known_calls
from ascend_gym.core.protocols import Built, RunOutput
from ascend_gym.core.records import MeasureProtocol, TensorSpec
from ascend_gym.core.status import Status
from ascend_gym.suite.loader import load_operator
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.simulator.chips import load_chip
from npu_daemon.simulator.target import instruction_groups, target_sheet

pytestmark = pytest.mark.slow

API = Path(npu_daemon.simulator.__file__).parent / "include" / "asim" / "api"
TYPES = ("half", "float", "int16_t", "uint16_t", "int32_t", "uint32_t")
INSTRUCTIONS = "asim/trace/instructions.def"
OPERANDS = {
    "float": ("f0", "f1", "f2"),
    "half": ("h0", "h1", "h2"),
    "int32_t": ("i0",),
    "uint32_t": ("u0",),
    "uint8_t": ("b0",),
}
# Of these prompts say nothing: they serve one purpose inside of others.
UNTOLD = {"CopyUbToUb", "Cast64", "MrgSort"}


@pytest.fixture(scope="module")
def bench(simulator: SimulatorBackend, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(simulator, tmp_path_factory.mktemp("api_sheet"), "add", "fp16_8192x2048")


def _status(bench: Workbench, text: str) -> tuple[Status, list[str]]:
    kernel = bench.spec.baseline.kernel_text + text
    result = bench.evaluate(bench.spec.baseline.rewritten(kernel=kernel))
    return result.status, [str(each) for each in result.all_diagnostics]


@pytest.mark.parametrize("call", known_calls(), ids=lambda call: call.name)
def test_every_call_is_declared_where_the_table_says(call) -> None:
    text = (API / call.header).read_text(encoding="utf-8")
    if INSTRUCTIONS in text:  # declares each row of this table
        text += (API.parents[1] / INSTRUCTIONS).read_text(encoding="utf-8")
    for name in [call.declared] if call.declared else call.names:
        assert re.search(
            rf"\b{name}\(|ASIM_\w+\({name}\)|^ELEMENTWISE\({name}, |\b(?:class|using) {name}\b", text, re.M
        ), name


def test_every_vector_instruction_is_told_of() -> None:
    told = {name for call in known_calls() for name in call.names}
    traced = set(chain.from_iterable(instruction_groups().values()))
    assert traced - told == UNTOLD


def test_every_example_compiles_as_it_stands(bench: Workbench) -> None:
    names = [f"LocalTensor<{of}> {name};" for of, group in OPERANDS.items() for name in group]
    examples = [f"{{ {call.example} }}" for call in known_calls() if call.example]
    body = "\n    ".join([*names, "GlobalTensor<float> x;", *examples])
    text = f"\nusing namespace AscendC;\n__aicore__ void every_call()\n{{\n    {body}\n}}\n"
    assert _status(bench, text) == (Status.OK, [])
    broken = text.replace("Brcb(f1, f0, 2,", "Brcb(f1, f0, 2, 3,")
    assert _status(bench, broken)[0] is Status.BUILD_ERROR


def test_types_are_those_that_the_headers_take(tmp_path: Path) -> None:
    checks = [
        f"static_assert({'' if of in call.types else '!'}asim::supports<asim::Op::{name}, {of}>);"
        for call in known_calls()
        if call.form and call.types
        for name in call.names
        for of in TYPES
    ]
    assert len(checks) > 100
    source = tmp_path / "types.cpp"
    source.write_text("\n".join(['#include "asim/semantics/vector.h"', *checks]) + "\n", encoding="utf-8")
    command = ["g++", "-std=c++17", f"-I{API.parents[1]}", "-fsyntax-only", str(source)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr


def test_tiling_data_are_read_at_the_price_of_global_memory(bench: Workbench) -> None:
    """More words cost an access each, and more lines what a line costs that follows one in the cache."""
    sheet = target_sheet("910B2")

    def latency_us(words: int) -> float:
        table = f"TILING_DATA_FIELD_DEF_ARR(uint64_t, {words}, table);\nEND_TILING_DATA_DEF"
        tiling = bench.spec.baseline.tiling_text.replace("END_TILING_DATA_DEF", table, 1)
        latency = bench.evaluate(bench.spec.baseline.rewritten(tiling=tiling)).latency_us
        assert latency is not None
        return latency

    cycles = (latency_us(256) - latency_us(64)) * sheet.clock_mhz
    told = 192 * sheet.scalar.global_access_cycles + 192 * 8 / 64 * sheet.scalar.global_stream_cycles
    assert cycles == pytest.approx(told, rel=0.05)


@pytest.mark.parametrize("blocks", [1, 8, 48])
def test_an_empty_launch_costs_what_the_sheet_says(
    simulator: SimulatorBackend, tmp_path: Path, blocks: int
) -> None:
    spec = load_operator("add")
    tiling = re.sub(r"SetBlockDim\(\w+\)", f"SetBlockDim({blocks})", spec.baseline.tiling_text)
    kernel = re.sub(r"^ *op\.\w+\([^;]*\);\n", "", spec.baseline.kernel_text, flags=re.MULTILINE)
    assert "op.Process" not in kernel
    candidate = spec.baseline.rewritten(kernel=kernel, tiling=tiling)
    case, protocol = spec.cases[0], MeasureProtocol()
    inputs = [[_zeros(tmp_path, tensor)] for tensor in case.inputs]
    built = simulator.build(spec, case, candidate, protocol)
    assert isinstance(built, Built)
    run = simulator.run(built, case, inputs, protocol)
    assert isinstance(run, RunOutput)
    price = simulator.price(run, load_chip("910B2"))
    simulator.cleanup(run)
    assert isinstance(price, dict)
    told_us = {each.blocks: each.vector_us for each in target_sheet("910B2").launches}[blocks]
    timing = load_chip("910B2").timing
    fetch_cycles = timing["code_unit_cycles"].value + blocks * timing["code_turn_cycles"].value
    told_us += fetch_cycles / timing["clock_mhz"].value  # of the code that this kernel has
    assert price["task_us"] == pytest.approx(told_us, abs=0.3)  # it copies its tiling data


def _zeros(folder: Path, tensor: TensorSpec) -> Path:
    path = folder / f"{tensor.name}.bin"
    path.write_bytes(bytes(tensor.size_bytes))
    return path
