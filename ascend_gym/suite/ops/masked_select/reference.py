"""Reference of MaskedSelect: exact."""

from __future__ import annotations

from typing import Any

import numpy as np


def inputs(case: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Return a mask that selects as many elements as the output of the case has."""
    (total,), (selected,) = case.inputs[1].shapes[0], case.outputs[0].shapes[0]
    return {"mask": rng.permutation(total) < selected}


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    return {"y": inputs["x"][inputs["mask"].astype(bool)]}
