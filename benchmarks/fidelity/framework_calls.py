"""What a framework's call takes beyond its bound: hand-written kernels of a cann-ops checkout, priced here.

The baseline of operators without sources is what framework calls cost (npu_daemon/eager.py). Each row is a
hand-written kernel at the shape of a case of the suite ``generate``, priced by the same simulator; beside it
is the least that any kernel of its traffic takes. Values are drawn here, and results are not judged.

    python benchmarks/fidelity/framework_calls.py --cann-ops DIR [--op NAME ..]
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from pathlib import Path

from fidelity_operators import price_us

from ascend_gym.core.config import cache_root
from ascend_gym.core.records import Case, FrameworkCall, OpSpec, TensorSpec
from ascend_gym.suite.imported import select_operators
from ascend_gym.suite.loader import load_operator
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.eager import bound_us
from npu_daemon.simulator.target import target_sheet

CHIP = "910B2"
Shape = tuple[int, ...]
_FLAT: list[Shape] = [(1024, 2048), (250, 999)]
_IMAGES: list[Shape] = [(16, 64, 32, 32), (3, 20, 17, 23)]
KERNELS: dict[str, tuple[str, list[Shape]]] = {
    **dict.fromkeys(("abs", "sqrt", "neg", "reciprocal", "muls", "tanh"), ("elementwise", _FLAT)),
    **dict.fromkeys(("gelu", "swish", "addcdiv"), ("elementwise", _FLAT)),
    "mse_loss_v2": ("whole tensor", _FLAT),
    "layer_norm_v4": ("rows", _FLAT),
    "rms_norm": ("rows", _FLAT),
    "instance_norm_v3": ("rows", _IMAGES),
    "global_avg_pool": ("rows", _IMAGES),
    "batch_norm_v3": ("channels", _IMAGES),
}
"""Kernels by name: their kind, and shapes of their first input."""


def case_at(spec: OpSpec, shape: Shape) -> Case:
    """Return an operator's example with its first input in another shape, and the others accordingly."""
    example = spec.cases[0]
    old = example.inputs[0].shapes[0]
    tensors = [tuple(_at(each, old, shape) for each in side) for side in (example.inputs, example.outputs)]
    name = "x".join(map(str, shape))
    return example.model_copy(update={"case_id": name, "inputs": tensors[0], "outputs": tensors[1]})


def _at(tensor: TensorSpec, old: Shape, new: Shape) -> TensorSpec:
    return tensor.model_copy(update={"shapes": tuple(_resized(item, old, new) for item in tensor.shapes)})


def _resized(item: Shape, old: Shape, new: Shape) -> Shape:
    """Return a shape with the new extents: all, those of one dimension, or those that are not reduced."""
    if item == old:
        return new
    if len(item) == len(old) == len(new):
        return tuple(
            1 if one == 1 and other != 1 else extent
            for one, other, extent in zip(item, old, new, strict=True)
        )
    if len(item) == 1 and item[0] > 1:
        return (new[1],)
    return item


def main() -> None:
    """Print each kernel beside its bound, and what it takes beyond it by kind."""
    parser = argparse.ArgumentParser(description="Hand-written kernels against the bound of their traffic.")
    parser.add_argument("--cann-ops", type=Path, required=True, help="checkout of cann-ops")
    parser.add_argument("--op", action="append", help="only this operator; repeatable")
    arguments = parser.parse_args()
    folders = select_operators(arguments.cann_ops, arguments.op or list(KERNELS))
    backend, target = SimulatorBackend(cache_root()), target_sheet(CHIP)
    beyond: dict[str, list[float]] = defaultdict(list)
    for name, folder in folders.items():
        spec = load_operator(folder.name, op_dir=folder)
        kind, shapes = KERNELS[name]
        for shape in shapes:
            case = case_at(spec, shape)
            try:
                taken_us = price_us(backend, spec, case, CHIP)
            except RuntimeError as error:
                print(f"{name} {case.case_id}: {error}")
                continue
            read, written = (sum(each.size_bytes for each in side) for side in (case.inputs, case.outputs))
            call = FrameworkCall(name=name, fresh_bytes=read, read_bytes=read, written_bytes=written)
            least_us = bound_us(call, target)
            beyond[kind].append(taken_us - least_us)
            print(
                f"{name:20} {kind:12} {case.inputs[0].dtype.value:8} {case.case_id:12} {taken_us:7.2f} us",
                end="",
            )
            print(
                f" bound {least_us:6.2f} us  +{taken_us - least_us:5.2f} us  {taken_us / least_us:5.2f}x",
                flush=True,
            )
    for kind, values in beyond.items():
        print(
            f"{kind}: +{min(values):.2f} to +{max(values):.2f} us, median +{statistics.median(values):.2f} us"
        )


if __name__ == "__main__":
    main()
