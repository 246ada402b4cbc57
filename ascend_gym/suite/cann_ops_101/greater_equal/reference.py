"""Reference of GreaterEqual."""

from __future__ import annotations

from typing import Any


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    a = inputs["x1"]
    b = inputs["x2"]
    return {"y": a >= b}
