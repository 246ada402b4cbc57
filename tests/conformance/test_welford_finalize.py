"""WelfordFinalize against the mean and variance of all values."""

from __future__ import annotations

import numpy as np
import pytest
from composed_machine import FAR, KB, OTHER, SRC, TMP, UB, bits, drawn, machine
from vector_machine import Machine, MachineFault

__all__ = ["machine"]


@pytest.mark.parametrize("scratch", [KB, 3 * KB, 60 * KB])
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize(
    ("columns", "head"), [(64, 64), (200, 200), (200, 72), (1000, 1), (4160, 4160), (4160, 96)]
)
def test_welford_finalize(machine: Machine, columns: int, head: int, counted: bool, scratch: int) -> None:
    """Means and squared distances of columns, those behind the head being one value shorter."""
    rows = 3
    x = drawn(19, (rows, columns), -1, 3, "float32").astype(float)
    present = np.ones(x.shape, bool)
    present[-1, head:] = False
    counts = present.sum(axis=0)
    means = np.where(present, x, 0).sum(axis=0) / counts
    distances = (np.where(present, x - means, 0) ** 2).sum(axis=0)
    machine.reset(UB)
    counts_at, result_at = 40 * KB, 60 * KB
    values = (means.astype(np.float32), distances.astype(np.float32), counts.astype(np.int32))
    for place, array in zip((0, 20 * KB, counts_at), values, strict=True):
        machine.put(place, array)
    machine.view(result_at, "float32", 16)[:] = 7
    shape = (columns, rows, head, rows - 1, columns - head)
    buffers = (counts_at if counted else 0, TMP, scratch)
    operands = (result_at, result_at + 32, 0, 20 * KB, *buffers, *shape, bits(present.sum(), "float32"))
    machine.call("WelfordFinalize", *operands)
    result = machine.view(result_at, "float32", 16)
    expected = np.array([[x[present].mean()], [x[present].var()]])
    np.testing.assert_allclose(result.reshape(2, 8)[:, :1], expected, rtol=2e-5)
    np.testing.assert_array_equal(result.reshape(2, 8)[:, 1:], 0)


@pytest.mark.parametrize(
    ("columns", "head", "tail", "message"),
    [
        (60, 60, 0, "abLength is 60, expected a multiple of 8: pad it to 64"),
        (64, 32, 16, r"headCountLength \+ tailCountLength is 48, expected 64"),
        (0, 0, 0, "abLength is 0, expected at least 1"),
    ],
)
def test_welford_finalize_refuses(machine: Machine, columns: int, head: int, tail: int, message: str) -> None:
    machine.reset(UB)
    buffers = (0, TMP, KB)
    with pytest.raises(MachineFault, match=f"WelfordFinalize: {message}"):
        machine.call("WelfordFinalize", FAR, FAR + 32, SRC, OTHER, *buffers, columns, 3, head, 2, tail, 0)
