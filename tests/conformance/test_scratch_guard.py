"""Composed calls with temporary buffers of any size: they fault, or write nothing behind the buffer."""

from __future__ import annotations

import re

import numpy as np
import pytest
from composed_machine import KB, bits, machine
from vector_machine import Machine, MachineFault

__all__ = ["machine"]

A, B, C, D, E = 0, 24 * KB, 48 * KB, 52 * KB, 56 * KB
TMP, GUARD_BYTES = 80 * KB, 48 * KB
# Many short rows, few long ones, and some that are neither.
SHAPES = [(160, 8), (40, 64), (5, 208), (1, 2032), (16, 100)]
# Bytes of which some are less than a call needs, and some more.
SIZES = [64, 500, 1024, 4100, 16000]


def _calls(rows: int, columns: int, dtype: str) -> dict[str, tuple[int | str, ...]]:
    """Return arguments of each call; "bytes" stands for the size of the temporary buffer."""
    one = bits(1, dtype)
    whole = rows * columns
    norm = (A, D, E, B, C, C + 8 * KB, rows, columns, columns, 1, TMP, "bytes", one)
    top = (A, D, B, C, E)
    return {
        **{f"{name} {dtype}": norm for name in ("LayerNorm", "LayerNorm of rows", "DeepNorm", "Normalize")},
        f"RmsNorm {dtype}": (A, 0, 0, *norm[3:]),
        f"GroupNorm {dtype}": (*norm[:6], 1, rows, 1, columns, TMP, "bytes", one),
        f"WelfordUpdate {dtype}": (A, D, B, C, E, whole // 4, TMP, "bytes", bits(0.25, "float32")),
        f"CumSum across {dtype}": (A, D, B, rows, columns, TMP, "bytes"),
        f"CumSum down {dtype}": (A, D, B, rows, columns, TMP, "bytes"),
        f"AscendQuant {dtype}": (A, B, TMP, "bytes", bits(1, "float32"), 0, whole),
        f"AscendQuant columns {dtype}": (
            A,
            B,
            TMP,
            "bytes",
            C,
            D,
            columns // 32 * 32,
            columns // 32 * 32 * rows,
        ),
        **{
            f"DropOut mode {mode} {dtype}": (A, B, C, 24 * KB, rows, columns, padded, TMP, "bytes")
            for mode, padded in ((1, -(-columns // 32) * 32), (2, columns), (3, columns), (4, 256))
        },
        f"LogSoftMax {dtype}": (A, D, E, B, rows, columns, TMP, "bytes"),
        f"SimpleSoftMax {dtype}": (A, D, E, B, rows, columns, TMP, "bytes"),
        f"TopK {dtype}": (*top, rows, -(-columns // 32) * 32, columns, 5, 0, TMP, "bytes"),
        f"TopK indexed {dtype}": (*top, rows, -(-columns // 32) * 32, columns, 5, 1, TMP, "bytes"),
        f"TopK small {dtype}": (*top, rows, 32, min(columns, 32), 5, 0, TMP, "bytes"),
        f"Axpy {dtype}": (A, B, bits(1, "float16"), TMP, "bytes", whole),
        **{
            f"{name} {dtype}": (A, B, C, TMP, "bytes", whole) for name in ("SwiGLU", "GeGLU", "ReGlu", "Fmod")
        },
    }


def _reductions(rows: int, columns: int) -> dict[str, tuple[int | str, ...]]:
    flags = ("ReduceAll", "ReduceAny")
    names = [
        f"{name} {pattern} {kind}"
        for name in flags
        for pattern in ("AR", "RA")
        for kind in ("uint8", "float32")
    ]
    sums = ("ReduceProd", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")
    names += [f"{name} {pattern} float32" for name in sums for pattern in ("AR", "RA")]
    whole = rows * columns
    counts = (whole, 2, 0, 1, whole, bits(2 * whole, "float32"))
    return {
        **dict.fromkeys(names, (A, B, rows, columns, TMP, "bytes")),
        "ReduceXorSum": (A, B, C, TMP, "bytes", whole),
        "Xor int16": (A, B, C, TMP, "bytes", whole),
        "WelfordFinalize": (A, A + 32, B, C, 0, TMP, "bytes", *counts),
    }


def _overrun_bytes(
    machine: Machine, name: str, arguments: tuple[int | str, ...], size: int
) -> tuple[int, str]:
    """Return how many bytes behind a buffer of that size a call changes, and its fault."""
    machine.reset(TMP + size + GUARD_BYTES)
    machine.view(0, "uint8", TMP)[:] = np.arange(TMP, dtype=np.uint32) % 64
    guard = machine.view(TMP + size, "uint8", GUARD_BYTES)
    guard[:] = 0x5A
    fault = ""
    try:
        machine.call(name, *(size if part == "bytes" else int(part) for part in arguments))
    except MachineFault as error:
        fault = str(error)
    return int((guard != 0x5A).sum()), fault


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nothing_behind_a_temporary_buffer_is_written(machine: Machine, shape: tuple[int, int]) -> None:
    calls = {**_calls(*shape, "float32"), **_calls(*shape, "float16"), **_reductions(*shape)}
    overrun, ran = [], set()
    for name, arguments in calls.items():
        sizes = [*SIZES]
        for size in sizes:
            changed, fault = _overrun_bytes(machine, name, arguments, size)
            if changed:
                overrun.append((name, size, changed))
            if not fault:
                ran.add(name)
            least = re.search(r"needs at least (\d+)", fault)
            if least and int(least[1]) < 64 * KB and int(least[1]) not in sizes:
                sizes.append(int(least[1]))  # just enough
    assert overrun == []
    assert len(ran) > len(calls) // 2
