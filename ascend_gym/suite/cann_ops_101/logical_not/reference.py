"""Reference of LogicalNot."""

from __future__ import annotations

from typing import Any


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    a = inputs["x"]
    return {"y": ~a.astype(bool)}
