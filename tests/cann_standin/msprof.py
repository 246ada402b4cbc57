"""Stands in for ``msprof op``: runs a program and writes what the device noted as the documented files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cann_samples import basic_info, write_several


def main(arguments: list[str]) -> int:
    """Run ``op [--option=value ...] PROGRAM ARGUMENT ...``."""
    options = dict(word.split("=", 1) for word in arguments[1:] if word.startswith("--"))
    command = [word for word in arguments[1:] if not word.startswith("--")]
    output = Path(options["--output"])
    if arguments[0] != "op" or output.stat().st_mode & 0o022:
        sys.stderr.write("expected msprof op, and an output folder that only its owner writes\n")
        return 1
    noted = output / "noted"
    print("[INFO] msprof op is a stand-in")
    status = subprocess.run(
        command, env={**os.environ, "ASCEND_STANDIN_TASKS": str(noted)}, check=False
    ).returncode
    tasks = [line.split() for line in noted.read_text().splitlines()] if noted.exists() else []
    noted.unlink(missing_ok=True)
    if any(name == "no_csv" for name, _, _ in tasks):
        return status
    clock = Path(os.environ["ASCEND_STANDIN_STATE"]) / "clock_mhz"
    current = clock.read_text() if clock.exists() else "1800"
    rows = [
        basic_info(name, float(us), **{"Block Dim": int(blocks), "Current Freq": current})
        for name, us, blocks in tasks
    ]
    if rows:
        write_several(output, rows, metrics="PipeUtilization" in options["--aic-metrics"])
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
