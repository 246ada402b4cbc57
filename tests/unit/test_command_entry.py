"""The entry of the console script."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INTERRUPTED_AT_THE_FIRST_IMPORT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "gymnasium":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Finder)
from ENTRY import main
main()
"""


def test_ctrl_c_while_packages_are_imported_ends_the_command_quietly() -> None:
    told = re.search(r'^ascend-gym = "(\w+):main"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.M)
    assert told is not None
    program = INTERRUPTED_AT_THE_FIRST_IMPORT.replace("ENTRY", told[1])
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "")
