"""Lower bound of a case's latency, from the roofs of memory and cube."""

from __future__ import annotations

from ascend_gym.core.records import Case, OpSpec, TensorSpec
from npu_daemon.simulator.chips import Chip

_FRACTAL_ELEMS = 16 * 16  # of the result of one step of a cube core
_DEPTHS = {8: "mmad_depth_8bit", 16: "mmad_depth_16bit"}  # by bits of an element


def floor_us(spec: OpSpec, case: Case, chip: Chip) -> float:
    """Return the minimum time of a launch for ``case``, in microseconds, whatever the kernel does.

    The roofline bound (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009) with the compulsory traffic
    of the case in place of the traffic of a kernel::

        floor = launch + max(inputs / HBM rate, (inputs + outputs) / L2 rate, products / cube rate)

    Inputs are in HBM and are read once, if all of them affect the outputs; outputs are written once, to the
    cache. Launch is the cost of the first block of an empty kernel. Products are known for operators whose
    type begins with ``Matmul``. The arithmetic of others is not known, and one vector instruction per output
    element takes less time than writing the element.
    """
    read_bytes = sum(tensor.size_bytes for tensor in case.inputs) if spec.reads_all_inputs else 0
    written_bytes = sum(tensor.size_bytes for tensor in case.outputs if not tensor.open)
    working_us = max(
        _moving_us(chip, "hbm_gb_per_s", read_bytes),
        _moving_us(chip, "l2_gb_per_s", read_bytes + written_bytes),
        _multiplying_us(chip, spec, case),
    )
    return _figure(chip, "launch_us") + _figure(chip, "block_start_us") + working_us


def _multiplying_us(chip: Chip, spec: OpSpec, case: Case) -> float:
    """Return the minimum time of all cube cores for a product of the first two inputs; 0 if there is none."""
    if not spec.op_type.lower().startswith("matmul") or len(case.inputs) < 2:
        return 0.0
    left, right, product = case.inputs[0], case.inputs[1], case.outputs[0]
    depth = _DEPTHS.get(left.dtype.bits) if left.dtype is right.dtype else None
    if depth is None or product.open:
        return 0.0
    steps = _multiplications(left, right, product) / (_FRACTAL_ELEMS * _figure(chip, depth))
    return steps / float(chip.geometry["aic_cores"].value) / _figure(chip, "clock_mhz")


def _multiplications(left: TensorSpec, right: TensorSpec, product: TensorSpec) -> int:
    """Return M x N x K of the product of two matrices, either of which may be transposed; else 0."""
    matrices = (left.shapes, right.shapes, product.shapes)
    if any(len(shapes) != 1 or len(shapes[0]) != 2 for shapes in matrices):
        return 0
    (rows, columns), left_extents, right_extents = (
        product.shapes[0],
        list(left.shapes[0]),
        list(right.shapes[0]),
    )
    if rows not in left_extents or columns not in right_extents:
        return 0
    left_extents.remove(rows)
    right_extents.remove(columns)
    return rows * columns * left_extents[0] if left_extents == right_extents else 0


def _moving_us(chip: Chip, rate: str, moved_bytes: int) -> float:
    return moved_bytes / _figure(chip, rate) / 1e3


def _figure(chip: Chip, name: str) -> float:
    return float(chip.timing[name].value)
