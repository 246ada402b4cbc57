"""The exact result of Power."""

import numpy as np


def reference(inputs, attributes):
    """Return x1 * x2^4 in double precision."""
    return {"y": inputs["x1"].astype(np.float64) * inputs["x2"].astype(np.float64) ** 4}
