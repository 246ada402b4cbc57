"""Reference of StridedSliceAssignV2."""

from __future__ import annotations

from typing import Any


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    var = inputs["var"].copy()
    bounds = zip(inputs["begin"], inputs["end"], inputs["strides"], strict=True)
    var[tuple(slice(*map(int, each)) for each in bounds)] = inputs["input_value"]
    return {"var": var}
