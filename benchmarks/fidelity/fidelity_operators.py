"""Prices operators of a cann-ops checkout at the shapes of published measurements, and compares.

The measurements (fidelity_operators.csv, each with its source) are task durations of the vendor's operators
of the same name on an Ascend 910B2: median of 20 after a warm-up, L2 filled with other data before each. The
operators run on values drawn here and are not judged: what they compute does not depend on them.

    python benchmarks/fidelity/fidelity_operators.py --cann-ops DIR [--op NAME] [--json FILE]
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from device_verdicts import NEAR

from ascend_gym.core.config import cache_root
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case, DType, MeasureProtocol, OpSpec, TensorSpec
from ascend_gym.suite import loader
from ascend_gym.suite.cann_cases import spec_with_cases
from ascend_gym.suite.imported import select_operators
from ascend_gym.suite.inputs import numpy_dtype
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.simulator.chips import load_chip

ROWS = Path(__file__).with_name("fidelity_operators.csv")
MANIFESTS = Path(loader.__file__).with_name("cann_ops_101")  # ours: examples of a checkout may need torch
SAME = 0.05  # measured times that differ by less have no order
_DRAWN = 1 << 20  # values, repeated to the size of each tensor


@dataclass(frozen=True)
class Row:
    """A measured operator beside its price."""

    operator: str
    shapes: str
    dtype: str
    measured_us: float
    simulated_us: float

    @property
    def ratio(self) -> float:
        """Simulated by measured."""
        return self.simulated_us / self.measured_us


def operator_of(folder: Path) -> OpSpec:
    """Return the operator of a folder of the checkout, with the cases that we have for it."""
    digest = loader.folder_digest(folder)
    return spec_with_cases(folder, MANIFESTS / folder.name, f"local/{folder.name}", digest)


def case_of(spec: OpSpec, shapes: list[list[list[int]]], dtype: str, attributes: dict[str, Any]) -> Case:
    """Return the case of a row: the operator's example with other shapes.

    Args:
        spec: the operator.
        shapes: for each of its first inputs, the shape of each tensor; the others stay as they are.
        dtype: of these inputs and of the outputs.
        attributes: of the operator. ``dim`` halves that dimension of the output.
    """
    example = spec.cases[0]
    inputs = list(example.inputs)
    for index, of_input in enumerate(shapes):
        inputs[index] = _resized(inputs[index], of_input, dtype)
    for index in range(len(shapes), len(inputs)):  # scalars are as wide as arithmetic is
        inputs[index] = inputs[index].model_copy(
            update={"dtype": DType("float16" if dtype == "float16" else "float32")}
        )
    results = [_halved(shape, attributes.get("dim")) for shape in shapes[0]]
    outputs = (_resized(example.outputs[0], results, dtype),)
    return Case(case_id="measured", inputs=tuple(inputs), outputs=outputs, attributes=attributes)


def _resized(tensor: TensorSpec, shapes: list[list[int]], dtype: str) -> TensorSpec:
    return tensor.model_copy(update={"shapes": tuple(map(tuple, shapes)), "dtype": DType(dtype)})


def _halved(shape: list[int], dim: int | None) -> list[int]:
    if dim is None:
        return shape
    return [extent // 2 if axis == dim % len(shape) else extent for axis, extent in enumerate(shape)]


def write_inputs(case: Case, folder: Path) -> list[list[Path]]:
    """Draw values between 0.5 and 1.5 for each input tensor; return their files."""
    drawn = np.random.default_rng(0).random(_DRAWN) + 0.5
    files = []
    for number, tensor in enumerate(case.inputs):
        row = []
        for item, shape in enumerate(tensor.shapes):
            path = folder / f"{number}-{item}"
            np.resize(drawn.astype(numpy_dtype(tensor.dtype)), math.prod(shape)).tofile(path)
            row.append(path)
        files.append(row)
    return files


def price_us(backend: SimulatorBackend, spec: OpSpec, case: Case, chip: str) -> float:
    """Return the simulated task duration of a case in microseconds.

    Raises:
        RuntimeError: it cannot be built, run or priced; the message says why.
    """
    protocol = MeasureProtocol(
        chip=chip, run_timeout_s=300.0, memory_limit_bytes=16 << 30, output_limit_bytes=4 << 30
    )
    built = backend.build(spec, case, spec.baseline, protocol)
    if isinstance(built, Failure):
        raise RuntimeError(f"{spec.name}: {built.diagnostics[0]}")
    with tempfile.TemporaryDirectory(prefix="ascend-gym-fidelity-") as folder:
        run = backend.run(built, case, write_inputs(case, Path(folder)), protocol)
    if isinstance(run, Failure):
        raise RuntimeError(f"{spec.name}: {run.diagnostics[0]}")
    try:
        price = backend.price(run, load_chip(chip))
    finally:
        backend.cleanup(run)
    if isinstance(price, Failure):
        raise RuntimeError(f"{spec.name}: {price.diagnostics[0]}")
    return float(price["task_us"])


def ordered_pairs(rows: Sequence[Row]) -> tuple[int, int]:
    """Return how many pairs of rows of one operator go the measured way, and how many there are."""
    right = total = 0
    for first, second in combinations(rows, 2):
        apart = abs(first.measured_us - second.measured_us) > SAME * max(
            first.measured_us, second.measured_us
        )
        if first.operator == second.operator and apart:
            total += 1
            right += (first.measured_us < second.measured_us) == (first.simulated_us < second.simulated_us)
    return right, total


def report_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Return rows and what they come to as one JSON-able document."""
    ratios = [row.ratio for row in rows]
    right, total = ordered_pairs(rows)
    return {
        "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
        "median_ratio": statistics.median(ratios),
        "share_near": sum(NEAR[0] <= ratio <= NEAR[1] for ratio in ratios) / len(ratios),
        "share_within_2x": sum(0.5 <= ratio <= 2 for ratio in ratios) / len(ratios),
        "pairs": {"right": right, "total": total},
    }


def main() -> None:
    """Price the rows and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cann-ops", type=Path, required=True, help="checkout of cann-ops")
    parser.add_argument("--op", help="only this operator")
    parser.add_argument("--json", type=Path, help="also write one JSON document to this file")
    arguments = parser.parse_args()
    with ROWS.open(encoding="utf-8", newline="") as stream:
        measured = [each for each in csv.DictReader(stream) if arguments.op in (None, each["operator"])]
    folders = select_operators(arguments.cann_ops, sorted({each["operator"] for each in measured}))
    specs = {folder.name: operator_of(folder) for folder in folders.values()}
    backend = SimulatorBackend(cache_root())
    rows = []
    for each in measured:
        spec = specs[each["operator"]]
        case = case_of(spec, json.loads(each["shapes"]), each["dtype"], json.loads(each["attributes"]))
        simulated_us = price_us(backend, spec, case, each["chip"])
        rows.append(
            Row(each["operator"], each["shapes"], each["dtype"], float(each["measured_us"]), simulated_us)
        )
        row = rows[-1]
        shapes = row.shapes if len(row.shapes) < 48 else f"{row.shapes[:45]}..."
        print(f"{row.operator:24} {row.dtype:9} {row.measured_us:9.2f} {simulated_us:9.2f}", end=" ")
        print(f"{row.ratio:5.2f} {shapes}")
    report = report_of(rows)
    print({name: value for name, value in report.items() if name != "rows"})
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
