"""What building kernels needs besides the wheel: headers, the interface, an object to link with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from npu_daemon.simulator.compiler import call_tool, clang
from npu_daemon.simulator.kernel_ir.headers import header_marks
from npu_daemon.simulator.own_sources import INCLUDE, SOURCES, cpu_flags

_INTERFACE = "interface.json"
_SUPPORT = "support.o"
_PROCESSOR_FLAG = "-march="
_PLAIN_PROCESSOR = "x86-64-v2"


@dataclass(frozen=True)
class KernelToolchain:
    """Where the parts are.

    Attributes:
        folder: holds all of them.
    """

    folder: Path

    @property
    def headers(self) -> tuple[Path, ...]:
        """Folders of the simulator's headers."""
        return (INCLUDE,)

    @property
    def interface_file(self) -> Path:
        """Functions that kernels may call, with their types, and the headers that may call them."""
        return self.folder / _INTERFACE

    @property
    def interface_symbols(self) -> frozenset[str]:
        """Names of those functions."""
        return _symbols(self.interface_file, self.interface_file.stat().st_mtime_ns)

    @property
    def support_object(self) -> Path:
        """Functions that code generation calls where the processor has no instruction."""
        return self.folder / _SUPPORT

    @property
    def processor(self) -> str:
        """What code is generated for; counts and results do not depend on it."""
        return next((flag.removeprefix(_PROCESSOR_FLAG) for flag in cpu_flags()), _PLAIN_PROCESSOR)


def prepare_kernel_toolchain(
    toolchain: KernelToolchain, interface: dict[str, str], constants: Sequence[str]
) -> None:
    """Put everything but precompiled headers into the folder of ``toolchain``.

    Args:
        toolchain: what to make, in an existing folder.
        interface: as ``interface_texts`` returns it.
        constants: as ``constant_functions`` returns them.

    Raises:
        InfrastructureError: the compiler is missing or refuses the simulator's sources.
    """
    headers = header_marks(INCLUDE, interface.keys())
    described = {"functions": interface, "headers": headers, "constants": list(constants)}
    toolchain.interface_file.write_text(json.dumps(described, indent=0), encoding="utf-8")
    options = ("-O2", "-fPIC", "-fvisibility=hidden", *cpu_flags(), "-c")
    call_tool([*clang(*options), str(SOURCES / "support" / "half.c"), "-o", str(toolchain.support_object)])


@cache
def _symbols(file: Path, changed_ns: int) -> frozenset[str]:
    return frozenset(json.loads(file.read_text("utf-8"))["functions"])
