"""What a kernel that saves work would write: the arithmetic that ``ideas.toml`` names, in numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

f16, f32 = np.float16, np.float32
Array = Any


def softmax(x: Array, shift: Array) -> Array:
    """Return the softmax of rows that are shifted by what is given."""
    powers = np.exp(x - shift)
    return powers / powers.sum(-1, keepdims=True)


def terms(x: Array) -> Array:
    """Return the first four terms of the exponential function."""
    return 1 + x + x**2 / 2 + x**3 / 6


def weighted(q: Array, k: Array, v: Array, scale: float, *, shifted: bool = True) -> Array:
    """Return attention, in single precision."""
    scores = q.astype(f32) @ k.astype(f32).transpose(0, 2, 1) * f32(scale)
    return softmax(scores, scores.max(-1, keepdims=True) if shifted else f32(0)) @ v.astype(f32)


def normed(
    x: Array, gamma: Array, beta: Array, epsilon: float, *, one_pass: bool = False, part: int | None = None
) -> Array:
    """Return the layer norm of rows, in single precision, from statistics of the first ``part`` columns."""
    wide = x.astype(f32)
    counted = wide[:, :part]
    mean = counted.mean(-1, keepdims=True, dtype=f32)
    if one_pass:
        variance = (counted * counted).mean(-1, keepdims=True, dtype=f32) - mean * mean
    else:
        variance = ((counted - mean) ** 2).mean(-1, keepdims=True, dtype=f32)
    return (wide - mean) / np.sqrt(variance + f32(epsilon)) * gamma.astype(f32) + beta.astype(f32)


def rstd_in_one_pass(x: Array, epsilon: float) -> Array:
    """Return what one over the deviation of rows is by sums of squares, in single precision."""
    wide = x.astype(f32)
    mean = wide.mean(-1, dtype=f32)
    return 1 / np.sqrt((wide * wide).mean(-1, dtype=f32) - mean * mean + f32(epsilon))


def grouped(x: Array, gamma: Array, beta: Array, groups: int, epsilon: float, *, mean: float) -> Array:
    """Return the group norm of a tensor whose groups are taken to have a given mean."""
    parts = x.reshape(len(x), groups, -1)
    variance = ((parts - mean) ** 2).mean(-1, keepdims=True)
    scaled = ((parts - mean) / np.sqrt(variance + epsilon)).reshape(x.shape)
    return scaled * gamma[:, None] + beta[:, None]


def swish(x: Array) -> Array:
    """Return x times its logistic function."""
    return x / (1 + np.exp(-x))


def activated(x: Array) -> Array:
    """Return the GELU by the hyperbolic tangent."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def overwritten(var: Array, indices: Array, updates: Array) -> Array:
    """Return rows to which the last update of each index alone was added."""
    result = var.copy()
    result[indices] = var[indices] + updates
    return result


def stepped(var: Array, m: Array, v: Array, grad: Array, a: dict[str, Any], epsilon: float) -> Array:
    """Return the weights after a step of Adam with decay, with another epsilon."""
    first = a["beta1"] * m + (1 - a["beta1"]) * grad
    second = a["beta2"] * v + (1 - a["beta2"]) * grad**2
    return var - a["lr"] * first / (np.sqrt(second) + epsilon)
