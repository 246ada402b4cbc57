"""Stands in for ``npu-smi info``: two devices, the second of which is not well."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cann_samples import NPU_SMI_INFO

if __name__ == "__main__":
    health = Path(os.environ["ASCEND_STANDIN_STATE"]) / "health"
    first = health.read_text() if health.exists() else "OK"
    sys.stdout.write(NPU_SMI_INFO.replace("| OK            |", f"| {first:<14}|", 1))
