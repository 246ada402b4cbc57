"""DropOut by masks of bytes and bits, packed and padded: values, instructions and faults."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from composed_machine import DST, FLOATS, KB, OTHER, SRC, TMP, UB, drawn, machine
from vector_machine import Array, Machine, MachineFault

__all__ = ["machine"]

PADDED_BYTES, BYTES, BITS, PADDED_BITS = 1, 2, 3, 4


def _mask(kept: Array, mode: int, mask_columns: int) -> Array:
    """Return the bytes of a mask of that mode, where padding is 0xFF."""
    if mode == BYTES:
        return kept.astype(np.uint8).ravel()
    if mode == BITS:
        return np.packbits(kept.ravel(), bitorder="little")
    rows = kept.astype(np.uint8) if mode == PADDED_BYTES else np.packbits(kept, axis=1, bitorder="little")
    return np.pad(rows, ((0, 0), (0, mask_columns - rows.shape[1])), constant_values=0xFF).ravel()


def _drop(machine: Machine, x: Array, mask: Array, mode: int, mask_columns: int, scratch: int) -> Array:
    machine.reset(UB)
    machine.put(SRC, x)
    machine.put(OTHER, mask)
    machine.view(DST, x.dtype, x.size + 16)[:] = 7
    operands = (DST, SRC, OTHER, mask.size, *x.shape, mask_columns, TMP, scratch)
    machine.call(f"DropOut mode {mode} {x.dtype}", *operands)
    result = machine.view(DST, x.dtype, x.size + 16)
    np.testing.assert_array_equal(result[x.size :], 7)
    return result[: x.size].reshape(x.shape)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scratch", [256, 2 * KB])
@pytest.mark.parametrize(
    ("rows", "columns", "mask_columns", "mode", "inferred"),
    [
        (5, 64, 96, PADDED_BYTES, True),
        (3, 10, 32, PADDED_BYTES, True),
        (5, 64, 64, BYTES, True),
        (7, 20, 20, BYTES, True),  # rows that are no whole data blocks
        (4, 64, 8, BITS, True),  # rows of eight bytes of the mask
        (64, 64, 8, BITS, True),
        (3, 20, 3, BITS, False),  # bits follow each other from row to row
        (5, 64, 32, PADDED_BITS, True),
        (5, 48, 64, PADDED_BITS, False),
    ],
)
def test_elements_are_dropped(
    machine: Machine,
    rows: int,
    columns: int,
    mask_columns: int,
    mode: int,
    inferred: bool,
    scratch: int,
    dtype: str,
) -> None:
    x, kept = (
        drawn(19, (rows, columns), -2, 3, dtype),
        np.random.default_rng(20).random((rows, columns)) < 0.5,
    )
    mask = _mask(kept, mode, mask_columns)
    for how in (mode, 0) if inferred else (mode,):
        result = _drop(machine, x, mask, how, mask_columns, scratch)
        np.testing.assert_array_equal(result, np.where(kept, 2 * x, 0))


@pytest.mark.parametrize(
    ("mode", "mask_columns", "dtype", "expected"),
    [
        (BYTES, 64, "float16", {"Cast": 32, "Mul": 32, "Muls": 32}),
        (BYTES, 64, "float32", {"Cast": 32 + 64, "Mul": 64, "Muls": 64}),
        (BITS, 8, "float16", {"Muls": 1 + 32, "SetCmpMask": 1, "Select": 32}),
        (PADDED_BITS, 32, "float16", {"Muls": 1 + 32, "SetCmpMask": 1, "GatherMask": 64, "Select": 32}),
    ],
)
def test_all_rows_go_at_once(
    machine: Machine, mode: int, mask_columns: int, dtype: str, expected: dict[str, int]
) -> None:
    _drop(
        machine, np.ones((64, 64), dtype), np.ones(64 * mask_columns, np.uint8), mode, mask_columns, 32 * KB
    )
    repeats: Counter[str] = Counter()
    for line in machine.trace():
        repeats[line.name] += line.repeats
    for name in ("PipeBarrier", "SetFlag", "WaitFlag"):
        del repeats[name]
    assert repeats == expected


@pytest.mark.parametrize(
    ("columns", "mask_columns", "mode", "message"),
    [
        (256, 8, 0, "maskLastAxis is 8, expected at least 32"),
        (256, 40, 0, "maskLastAxis is 40, expected a multiple of 32: pad it to 64"),
        (24, 32, PADDED_BITS, "srcLastAxis is 24, expected a multiple of 16: pad it to 32"),
        (256, 0, BITS, "maskLastAxis is 0, expected at least 1"),
        (512, 32, BITS, "the number of bytes of maskLocal is 32, expected at least 64"),
        (64, 64, BYTES, "the number of bytes of maskLocal is 32, expected at least 64"),
    ],
)
def test_masks_that_are_too_short_are_refused(
    machine: Machine, columns: int, mask_columns: int, mode: int, message: str
) -> None:
    machine.reset(UB)
    with pytest.raises(MachineFault, match=f"DropOut: {message}"):
        machine.call(f"DropOut mode {mode} float32", DST, SRC, OTHER, 32, 1, columns, mask_columns, TMP, KB)
