"""Stands in for ``msprof op``: runs a program and writes what the device noted as the documented files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cann_samples import basic_info, write_several

CLEANER = "asg_l2_clean"
WARM_SHARE = 0.5  # of the time, where launches to warm up or the call before have left the data in L2


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
    if "--kernel-name" not in options:
        tasks = [task for task in tasks if task[0] == tasks[0][0]]
    elif options["--kernel-name"] != "*":
        sys.stderr.write("the stand-in knows --kernel-name=* only\n")
        return 1
    clock = Path(os.environ["ASCEND_STANDIN_STATE"]) / "clock_mhz"
    current = clock.read_text() if clock.exists() else "1800"
    warm_up = int(options.get("--warm-up", "5"))
    most = int(options.get("--launch-count", "1"))
    rows = []
    in_cache: set[str] = set()  # kernels whose data are there
    for name, us, blocks in tasks[:most]:
        factor = WARM_SHARE if name != CLEANER and (warm_up > 0 or name in in_cache) else 1.0
        in_cache = set() if name == CLEANER else {*in_cache, name}
        rows.append(
            basic_info(name, float(us) * factor, **{"Block Dim": int(blocks), "Current Freq": current})
        )
    if rows:
        write_several(output, rows, metrics="PipeUtilization" in options["--aic-metrics"])
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
