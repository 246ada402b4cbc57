"""Reference of ForeachPowScalarAndTensor."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    base = float(inputs["scalar"][0])
    return {"y": [base ** x.astype(np.float64) for x in inputs["x"]]}
