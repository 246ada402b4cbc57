"""Where the compiler is: a wheel that every installation has, so that no compiler of the system is needed."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ascend_gym.core.errors import InfrastructureError

COMPILER_PACKAGE = "ziglang"


@cache
def compiler_folder() -> Path:
    """Return where the wheel is installed.

    Raises:
        InfrastructureError: it is not.
    """
    found = find_spec(COMPILER_PACKAGE)
    if found is None or found.origin is None:
        raise InfrastructureError(
            f"the package {COMPILER_PACKAGE}, whose compiler is needed, is not installed: "
            "install ascend-gym again, with its dependencies"
        )
    return Path(found.origin).resolve().parent


def compiler_program() -> str:
    """Return the program whose first argument says which tool it is: ``clang``, ``c++``, ``ld.lld``, ``ar``.

    Raises:
        InfrastructureError: the wheel is not installed.
    """
    return str(compiler_folder() / "zig")
