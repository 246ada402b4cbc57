"""The exact result of Columns."""

import numpy as np


def reference(inputs, attributes):
    """Return |2 x + 1| of the first 64 columns."""
    return {"y": np.abs(2.0 * inputs["x"][:, :64].astype(np.float64) + 1.0)}
