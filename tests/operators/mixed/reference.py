"""The exact result of Mixed."""

import numpy as np


def reference(inputs, attributes):
    """Return 2 a b."""
    return {"y": 2.0 * inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)}
