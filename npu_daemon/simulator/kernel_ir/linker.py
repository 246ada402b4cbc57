"""How a kernel's object becomes the library that the run program loads."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

from npu_daemon.simulator.compiler import lld
from npu_daemon.simulator.elf_symbols import dynamic_symbols
from npu_daemon.simulator.kernel_ir.instrumenter import CALLBACKS

STACK_POINTER = "__safestack_unsafe_stack_ptr"  # the run program's, one for each block (SafeStack)
_CALLBACK_NAMES = frozenset(line.partition("@")[2].partition("(")[0] for line in CALLBACKS)
_OPTIONS = ("-shared", "--build-id=none", "--hash-style=gnu", "--eh-frame-hdr", "-z", "now", "-z", "relro")


def link_command(objects: tuple[Path, ...], output: Path) -> list[str]:
    """Return the call that links a library without any other."""
    return lld(*_OPTIONS, *map(str, objects), "-o", str(output))


def foreign_symbols(library: Path, interface: Set[str]) -> list[str]:
    """Return what a linked kernel takes from elsewhere and the run program does not offer to kernels.

    The verifier lets no such function through; what is left is what code generation calls by itself.

    Raises:
        ValueError: it is no library that the linker made.
    """
    return sorted(dynamic_symbols(library).undefined - interface - _CALLBACK_NAMES - {STACK_POINTER})
