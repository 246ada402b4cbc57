"""Entry points of the commands ``ascend-gym`` and ``npu-daemon``.

Importing them takes most of a second. An interrupt meanwhile ends the process, without a traceback. These
functions live here because ``ascend_gym`` imports gymnasium before anything inside it can run.
"""

from __future__ import annotations

import signal
from importlib import import_module


def ascend_gym() -> None:
    """Run ``ascend-gym``."""
    _run("ascend_gym.cli")


def npu_daemon() -> None:
    """Run ``npu-daemon``."""
    _run("npu_daemon.__main__")


def _run(module: str) -> None:
    """Import a module and call its ``main``."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:  # a script may have begun the command in its background, with interrupts ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    main = import_module(module).main
    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
