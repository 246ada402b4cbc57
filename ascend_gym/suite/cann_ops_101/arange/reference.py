"""Reference of Arange."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    start, end, step = (inputs[name][0].item() for name in ("start", "end", "step"))
    return {"out": np.arange(start, end, step)}
