"""Reference of LinSpace."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    start, stop, count = (inputs[name][0].item() for name in ("start", "stop", "num"))
    return {"output": np.linspace(start, stop, count)}
