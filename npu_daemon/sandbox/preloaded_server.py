"""Process server with a preloaded Python program: each run forks, is confined, and calls its ``main``.

A script like ``server``, whose functions it uses, with a ``Preload`` as its second argument.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import resource
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

_STREAMS = (0, 1, 2)


def load(description: str) -> Callable[[list[str]], int]:
    """Import the module of a ``Preload`` and return its function ``main``."""
    wanted: dict[str, Any] = json.loads(description)
    sys.path[:0] = wanted["paths"]
    program: Callable[[list[str]], int] = importlib.import_module(wanted["module"]).main
    return program


def run(program: Callable[[list[str]], int], arguments: list[str], passed: list[int]) -> NoReturn:
    """Run a program with no descriptors except the standard streams and those passed on."""
    kept = [*_STREAMS, *sorted(passed)]
    ends = [*kept[len(_STREAMS) :], resource.getrlimit(resource.RLIMIT_NOFILE)[1]]
    for before, after in zip(kept[len(_STREAMS) - 1 :], ends, strict=True):
        os.closerange(before + 1, after)
    gc.enable()  # but for what was loaded, which is frozen
    status = 1
    try:
        status = program(arguments[1:])
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc(limit=-3)
        os._exit(status)


def main() -> None:
    """Serve the socket whose descriptor is the first argument."""
    spec = importlib.util.spec_from_file_location("server", Path(__file__).with_name("server.py"))
    assert spec is not None
    assert spec.loader is not None
    server = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(server)
    program = load(sys.argv[2])
    server.main(lambda arguments, passed: run(program, arguments, passed))


if __name__ == "__main__":
    main()
