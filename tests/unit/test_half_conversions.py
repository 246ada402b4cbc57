"""Conversions that the compiler calls where the processor has no instruction, against numpy's."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from npu_daemon.simulator.compiler import call_tool, clang, lld
from npu_daemon.simulator.own_sources import SOURCES

DRIVER = """
#include <stdint.h>
_Float16 __truncdfhf2(double);
float __extendhfsf2(_Float16);
void narrow(const double *from, _Float16 *to, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) to[i] = __truncdfhf2(from[i]);
}
void widen(const _Float16 *from, float *to, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) to[i] = __extendhfsf2(from[i]);
}
"""
ALL_HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


@pytest.fixture(scope="module")
def conversions(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("half")
    (folder / "driver.c").write_text(DRIVER)
    objects = []
    for source in (folder / "driver.c", SOURCES / "support" / "half.c"):
        objects.append(str(folder / f"{source.stem}.o"))
        call_tool([*clang("-O1", "-fPIC", "-nostdinc++", "-c", str(source)), "-o", objects[-1]])
    call_tool(lld("-shared", *objects, "-o", str(folder / "half.so")))
    return ctypes.CDLL(str(folder / "half.so"))


def converted(function: ctypes._NamedFuncPointer, values: np.ndarray, dtype: type) -> np.ndarray:
    result = np.empty(len(values), dtype)
    function(
        ctypes.c_void_p(values.ctypes.data), ctypes.c_void_p(result.ctypes.data), ctypes.c_uint64(len(values))
    )
    return result


def test_every_half_becomes_the_same_float(conversions: ctypes.CDLL) -> None:
    result = converted(conversions.widen, ALL_HALVES, np.float32)
    numbers = ~np.isnan(ALL_HALVES)
    expected = ALL_HALVES.astype(np.float32)
    assert np.array_equal(result[numbers].view(np.uint32), expected[numbers].view(np.uint32))
    assert np.isnan(result[~numbers]).all()


def test_doubles_are_rounded_once_to_nearest_even(conversions: ctypes.CDLL) -> None:
    halves = ALL_HALVES[np.isfinite(ALL_HALVES)].astype(np.float64)
    ordered = np.sort(halves)
    middles = (ordered[1:] + ordered[:-1]) / 2
    beside = [np.nextafter(middles, direction) for direction in (-np.inf, np.inf)]
    edges = np.array([65519.999, 65520.0, 65536.0, 1e300, 5e-324, 2.0**-25, np.inf, 0.0])
    values = np.concatenate([halves, middles, *beside, edges, -edges])
    with np.errstate(over="ignore", under="ignore"):
        expected = values.astype(np.float16)
    result = converted(conversions.narrow, values, np.float16)
    assert np.array_equal(result.view(np.uint16), expected.view(np.uint16))
    assert np.isnan(converted(conversions.narrow, np.array([np.nan, -np.nan]), np.float16)).all()
