"""Formulas that several references share; everything is computed in float64."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_ERF_STEPS = 256  # of the table, in each unit
_ERF_END = 6  # beyond it the error function is 1 to 2e-17


def rms_norm_of_sum(inputs: Mapping[str, Any], epsilon: float) -> tuple[Any, Any, Any]:
    """Normalise ``x1 + x2`` by its root mean square along the last axis.

    Returns:
        The sum, the reciprocal of its root mean square, and the normalised sum times ``gamma``.
    """
    total = _sum(inputs)
    scale = 1.0 / np.sqrt((total**2).mean(axis=-1, keepdims=True) + epsilon)
    return total, scale, total * scale * inputs["gamma"].astype(np.float64)


def layer_norm_of_sum(inputs: Mapping[str, Any], epsilon: float) -> tuple[Any, Any, Any, Any]:
    """Normalise ``x1 + x2``, plus ``bias`` where there is one, by mean and deviation along the last axis.

    Returns:
        The sum, its mean, the reciprocal of its deviation, the normalised sum times ``gamma`` plus ``beta``.
    """
    total = _sum(inputs)
    if "bias" in inputs:
        total = total + inputs["bias"].astype(np.float64)
    mean = total.mean(axis=-1, keepdims=True)
    scale = 1.0 / np.sqrt(total.var(axis=-1, keepdims=True) + epsilon)
    normed = (total - mean) * scale * inputs["gamma"].astype(np.float64) + inputs["beta"].astype(np.float64)
    return total, mean, scale, normed


def grid_corners(value: Any, side: int, x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Return the values of a square grid at the four points around each sample, 0 outside of the grid.

    Args:
        value: shape (batch, side * side, head, channel).
        side: points of the grid along one axis.
        x: column of each sample, shape (batch, query, head, point); ``y`` likewise its row.
        y: see ``x``.

    Returns:
        Values above left, above right, below left and below right: (batch, query, head, point, channel) each.
    """
    batches, _, heads, channels = value.shape
    grid = value.reshape(batches, side, side, heads, channels)
    padded = np.pad(grid, ((0, 0), (1, 1), (1, 1), (0, 0), (0, 0)))
    batch, _, head, _ = np.ogrid[:batches, :1, :heads, :1]
    left, top = np.floor(x).astype(int) + 1, np.floor(y).astype(int) + 1
    around = [padded[batch, top + down, left + right, head] for down in (0, 1) for right in (0, 1)]
    return around[0], around[1], around[2], around[3]


def _sum(inputs: Mapping[str, Any]) -> Any:
    return inputs["x1"].astype(np.float64) + inputs["x2"].astype(np.float64)


def lstm(inputs: dict[str, Any], weights: Any, forget_bias: float) -> dict[str, Any]:
    """Return outputs and gates of an LSTM cell over a sequence, by the names of DynamicRNN.

    Args:
        inputs: ``x`` (steps, batch, in), ``b`` (4 hidden), ``init_h`` and ``init_c`` (1, batch, hidden).
        weights: of x above those of h, (in + hidden, 4 hidden), for the gates i, j, f and o.
        forget_bias: added to what gate f is computed from.
    """
    bias, state, cell = (inputs[name].astype(np.float64) for name in ("b", "init_h", "init_c"))
    steps = []
    for x in inputs["x"].astype(np.float64):
        mixed = np.concatenate([x, state.reshape(len(x), -1)], axis=-1) @ weights.astype(np.float64) + bias
        gates = np.split(mixed, 4, axis=-1)
        i, f, o = (1.0 / (1.0 + np.exp(-gate)) for gate in (gates[0], gates[2] + forget_bias, gates[3]))
        j = np.tanh(gates[1])
        cell = f * cell.reshape(j.shape) + i * j
        state = o * np.tanh(cell)
        steps.append((state, state, cell, i, j, f, o, np.tanh(cell)))
    names = ("y", "output_h", "output_c", "i", "j", "f", "o", "tanhc")
    return dict(zip(names, map(np.stack, zip(*steps, strict=True)), strict=True))


def erf(values: Any) -> Any:
    """Return the error function to 1e-14, from a table and four terms of its Taylor series."""
    x = np.clip(np.asarray(values, dtype=np.float64), -_ERF_END, _ERF_END)
    places = np.rint(x * _ERF_STEPS)
    at, step = places / _ERF_STEPS, x - places / _ERF_STEPS
    middle = _ERF_END * _ERF_STEPS
    table = np.array([math.erf(k / _ERF_STEPS) for k in range(-middle, middle + 1)])
    slope = 2.0 / np.sqrt(np.pi) * np.exp(-(at**2))
    series = 1.0 - step * (at - step * ((2.0 * at**2 - 1.0) / 3.0 - step * (2.0 * at**3 - 3.0 * at) / 6.0))
    return table[places.astype(int) + middle] + slope * step * series


def linear_shares(size: int, out: int, aligned: bool) -> Any:
    """Return what each of ``size`` elements adds to each of ``out`` when they are interpolated: (out, size).

    Args:
        size: elements along an axis.
        out: elements that they become.
        aligned: whether the corners of both coincide.
    """
    if aligned:
        at = np.arange(out) * ((size - 1) / (out - 1) if out > 1 else 0.0)
    else:
        at = np.maximum((np.arange(out) + 0.5) * size / out - 0.5, 0.0)
    first = np.floor(at).astype(int)
    shares = np.zeros((out, size))
    shares[np.arange(out), first] += 1.0 - (at - first)
    shares[np.arange(out), np.minimum(first + 1, size - 1)] += at - first
    return shares


def triangle_shares(size: int, out: int, aligned: bool) -> Any:
    """Return the same as ``linear_shares`` by a triangle filter, as wide as what an output stands for."""
    scale = (size - 1) / (out - 1) if aligned else size / out
    reach = max(scale, 1.0)
    centres = scale * (np.arange(out)[:, None] + 0.5)
    shares = np.maximum(1.0 - np.abs(np.arange(size) + 0.5 - centres) / reach, 0.0)
    return shares / shares.sum(axis=1, keepdims=True)


def gradient_of_padding(gradient: Any, paddings: Any, mode: Any) -> Any:
    """Return the gradient of what was padded: each element gets what its copies have.

    Args:
        gradient: of the padded tensor.
        paddings: elements before and after, of each axis.
        mode: of ``numpy.pad``.
    """
    result = gradient.astype(np.float64)
    for axis, (before, after) in enumerate(paddings.reshape(-1, 2)):
        size = result.shape[axis] - before - after
        sources = np.pad(np.arange(size), (before, after), mode=mode)
        shares = (np.arange(size)[:, None] == sources).astype(np.float64)
        result = np.moveaxis(np.tensordot(shares, result, (1, axis)), 0, axis)
    return result


def ge_glu(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the left half of ``x`` along the last axis gated by GELU (tanh form) of the right, and that."""
    left, right = np.split(inputs["x"].astype(np.float64), 2, axis=-1)
    gelu = right / (1.0 + np.exp(-np.sqrt(8.0 / np.pi) * (right + 0.044715 * right**3)))
    return {"y": left * gelu, "gelu": gelu}


def motion_compensation(inputs: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Move each point by its share of the motion until the last time.

    Args:
        inputs: ``points`` (4, n), of which three rows are coordinates, and ``timestamp`` (n).
        attributes: times, quaternions and translations of begin and end.
    """
    first, last = attributes["timestamp_min"], attributes["timestamp_max"]
    share = (last - inputs["timestamp"].astype(np.float64)) / (last - first)
    before, after = (_unit(attributes[f"quaterniond_{end}"]) for end in ("min", "max"))
    back = after * np.array([1.0, -1.0, -1.0, -1.0])
    shift = np.subtract(attributes["translation_min"], attributes["translation_max"])
    turns = _between(_product(back, before), share)
    out = inputs["points"].astype(np.float64)
    out[:3] = _turned(turns, out[:3]) + share * _turned(back[:, None], shift[:, None])
    return {"out": out}


def _unit(quaternion: Any) -> Any:
    return np.asarray(quaternion, dtype=np.float64) / np.linalg.norm(quaternion)


def _product(a: Any, b: Any) -> Any:
    scalar = a[0] * b[0] - a[1:] @ b[1:]
    return np.concatenate([[scalar], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])


def _between(turn: Any, share: Any) -> Any:
    """Return the quaternions (4, n) that make ``share`` (n) of a turn, the shorter way round."""
    turn = turn if turn[0] >= 0.0 else -turn
    angle = np.arccos(turn[0])
    axis = turn[1:] / np.sin(angle)
    return np.concatenate([np.cos(share * angle)[None], np.sin(share * angle) * axis[:, None]])


def _turned(quaternions: Any, points: Any) -> Any:
    """Return points (3, n) turned by unit quaternions (4, n)."""
    scalar, vector = quaternions[0], quaternions[1:]
    aside = 2.0 * np.cross(vector, points, axis=0)
    return points + scalar * aside + np.cross(vector, aside, axis=0)
