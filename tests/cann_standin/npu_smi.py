"""Stands in for ``npu-smi info``: two devices, the second of which is not well."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cann_samples import NPU_SMI_INFO

NOBODY = "| No running processes found in NPU 0                                                            |"

if __name__ == "__main__":
    health = Path(os.environ["ASCEND_STANDIN_STATE"]) / "health"
    first = health.read_text() if health.exists() else "OK"
    said = NPU_SMI_INFO.replace("| OK            |", f"| {first:<14}|", 1)
    user = Path(os.environ["ASCEND_STANDIN_STATE"]) / "user"
    if user.exists():
        row = f"| 0       0                 | {user.read_text():<13} | {'python3':<24} | {'5630':<23} |"
        said = said.replace(NOBODY, row)
    sys.stdout.write(said)
