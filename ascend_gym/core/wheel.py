"""Location of the compiler, which comes as a wheel so that no system compiler is needed."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ascend_gym.core.errors import InfrastructureError

COMPILER_PACKAGE = "ziglang"


@cache
def compiler_folder() -> Path:
    """Return the folder of the installed wheel.

    Raises:
        InfrastructureError: it is not installed.
    """
    found = find_spec(COMPILER_PACKAGE)
    if found is None or found.origin is None:
        raise InfrastructureError(
            f"the package {COMPILER_PACKAGE}, whose compiler is needed, is not installed: "
            "install ascend-gym again, with its dependencies"
        )
    return Path(found.origin).resolve().parent


def compiler_program() -> str:
    """Return the program whose first argument selects the tool: ``clang``, ``c++``, ``ld.lld``, ``ar``.

    Raises:
        InfrastructureError: the wheel is not installed.
    """
    return str(compiler_folder() / "zig")
