"""Reference of Reshape."""

from __future__ import annotations

from typing import Any


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    return {"y": inputs["x"].reshape(tuple(inputs["shape"]))}
