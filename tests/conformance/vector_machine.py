"""Builds a test driver against the simulator's runtime and calls vector instructions through it."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import sanitizers

from npu_daemon.simulator import toolchain
from npu_daemon.simulator.compiler import call_tool
from npu_daemon.simulator.object_store import Part
from npu_daemon.simulator.own_sources import SOURCES, own_flags, own_part
from npu_daemon.simulator.standard_library import build_standard_library

UB_BYTES = 64 * 1024
BLOCK_BYTES = 32
REPEAT_BYTES = 256
_DRIVERS = Path(__file__).parent / "drivers"
_RUNTIME = SOURCES / "runtime"
# Not optimised, which saves most of the compiler's time: hundreds of templates that call the runtime once.
_DRIVER_OPTIONS = ("-Xclang", "-disable-llvm-passes")
_MEMORY_BYTES = 1 << 40
_MEMORY_RANGES = count(1)  # of global memory, one for each machine of this process
_COMMON = (
    "core",
    "gm",
    "kernel_memory",
    "kernel_objects",
    "local_memory",
    "operand_overlap",
    "queue",
    "refusal",
)
_COMMON += ("reached", "registers", "rerun", "scalar_memory", "sync")
Array = npt.NDArray[Any]


class MachineFault(Exception):
    """What the simulator reported instead of finishing the call."""


@dataclass(frozen=True)
class TraceLine:
    """One instruction of the trace; operands are (offset, extent) in bytes, the written one first."""

    name: str
    dtype_bytes: int
    repeats: int
    operands: tuple[tuple[int, int], ...]


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the numpy type for a driver's type name."""
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


class Machine:
    """One vector core whose unified buffer is a numpy array."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.machine_memory_at(ctypes.c_uint64(_MEMORY_BYTES * next(_MEMORY_RANGES)))
        library.machine_reset.restype = ctypes.c_void_p
        library.machine_call.restype = ctypes.c_char_p
        library.machine_trace.restype = ctypes.c_char_p
        self.reset()

    def reset(self, ub_bytes: int = UB_BYTES) -> None:
        """Start over with a zeroed unified buffer and an empty trace."""
        base = self._library.machine_reset(ctypes.c_uint32(ub_bytes))
        self.ub: npt.NDArray[np.uint8] = np.ctypeslib.as_array(
            ctypes.cast(base, ctypes.POINTER(ctypes.c_uint8)), (ub_bytes,)
        )

    def view(self, offset_bytes: int, dtype: np.dtype[Any] | str, count: int) -> Array:
        """Return ``count`` elements of the unified buffer as a writable view."""
        kind = dtype_of(dtype) if isinstance(dtype, str) else dtype
        return self.ub[offset_bytes : offset_bytes + count * kind.itemsize].view(kind)

    def put(self, offset_bytes: int, values: Array) -> None:
        """Copy an array into the unified buffer."""
        self.ub[offset_bytes : offset_bytes + values.nbytes] = (
            np.ascontiguousarray(values).ravel().view(np.uint8)
        )

    def call(self, name: str, *arguments: int) -> None:
        """Run one call of the driver.

        Raises:
            MachineFault: the simulator stopped the call.
        """
        packed = (ctypes.c_int64 * max(len(arguments), 1))(*(_signed(value) for value in arguments))
        message = self._library.machine_call(name.encode(), packed)
        if message is not None:
            raise MachineFault(message.decode())

    def trace(self) -> list[TraceLine]:
        """Return the instructions issued since the last reset."""
        return [_trace_line(line) for line in self._library.machine_trace().decode().splitlines()]


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _trace_line(line: str) -> TraceLine:
    name, dtype_bytes, repeats, *operands = line.split()
    pairs = (operand.split(":") for operand in operands)
    return TraceLine(name, int(dtype_bytes), int(repeats), tuple((int(a), int(b)) for a, b in pairs))


def build_machine(driver: str, runtime: Sequence[str], folder: Path) -> Machine:
    """Load ``drivers/<driver>.cpp`` linked with runtime sources.

    Args:
        driver: name of the driver.
        runtime: names of the runtime sources that it needs beside the common ones.
        folder: of the test cache. What is compiled for it is shared with the simulator's own programs.
    """
    sources = [_DRIVERS / f"{driver}.cpp", _DRIVERS / "machine.cpp"]
    sources += [_RUNTIME / f"{name}.cpp" for name in (*runtime, *_COMMON)]
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        objects = [Path(scratch) / f"{number}.o" for number in range(len(sources))]
        library = Path(scratch) / f"{driver}.so"
        if sanitizers.machine_flags:
            _link_sanitized(sources, objects, library, folder)
        else:
            store = toolchain.object_store(folder.parent / "simulator")
            store.compile_all(_parts(sources, objects))
            standard = build_standard_library(Path(scratch) / "standard", store)
            standard.link_library(library, [str(target) for target in objects], ["--exclude-libs=ALL"])
        return Machine(ctypes.CDLL(str(library)))


def _parts(sources: Sequence[Path], objects: Sequence[Path]) -> list[Part]:
    """Return what is compiled of sources; those of the runtime are the simulator's own objects."""
    return [
        own_part(source, target, toolchain.RUNTIME_OPTIONS if source.parent == _RUNTIME else _DRIVER_OPTIONS)
        for source, target in zip(sources, objects, strict=True)
    ]


def _link_sanitized(sources: Sequence[Path], objects: Sequence[Path], library: Path, folder: Path) -> None:
    """Make the driver's library with g++ and its sanitizers."""
    flags = (*own_flags(), *sanitizers.machine_flags, "-c")
    parts = [Part(flags, source, target) for source, target in zip(sources, objects, strict=True)]
    sanitizers.sanitizing_store(folder.parent / "simulator").compile_all(parts)
    call_tool(
        [
            *sanitizers.gxx_linker(),
            "-shared",
            *sanitizers.machine_flags,
            *map(str, objects),
            "-o",
            str(library),
        ]
    )


@dataclass(frozen=True)
class Layout:
    """Where the lanes of an operand are: start in bytes, strides in 32 B blocks."""

    offset_bytes: int
    block_stride: int = 1
    repeat_stride: int = 8

    def lane_offset_bytes(self, repeat: int, lane: int, itemsize: int) -> int:
        """Return the byte offset of one lane."""
        block, within = divmod(lane, BLOCK_BYTES // itemsize)
        blocks = repeat * self.repeat_stride + block * self.block_stride
        return self.offset_bytes + blocks * BLOCK_BYTES + within * itemsize


def leading_mask(lanes: int) -> tuple[int, int]:
    """Return the low and high mask words with the first ``lanes`` bits set."""
    bits = (1 << lanes) - 1
    return bits & (2**64 - 1), bits >> 64


def active_lanes(mask: tuple[int, int], lanes: int) -> list[int]:
    """Return the numbers of the active lanes of a repeat."""
    bits = mask[0] | mask[1] << 64
    return [lane for lane in range(lanes) if bits >> lane & 1]
