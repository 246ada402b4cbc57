"""Programs drafted by rules from references, and what the rules refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.ascend_craft.checking import checked
from agents.ascend_craft.draft import drafted
from agents.ascend_craft.synthesis.graph import NotCoveredError
from ascend_gym.core.records import OpSpec
from ascend_gym.staged.lower import lower
from ascend_gym.staged.parse import parse
from ascend_gym.staged.verify import verify
from ascend_gym.suite.loader import list_operators, load_operator
from ascend_gym.suite.skeleton import interface_of

SUITE = {spec.name: spec for spec in list_operators("generate")}

# one of each way to compute: element by element, rows, middle axes, everything, scans, windows, choices
PATTERNS = [
    "gelu",
    "adam",
    "softmax",
    "group_norm",
    "batch_norm",
    "product_reduction",
    "lamb",
    "triplet_margin_loss",
    "cross_entropy_loss",
    "cumsum_reverse",
    "masked_cumsum",
    "average_pooling_3d",
    "mhc_post_grad",
]

MANIFEST = """eager = ["call: x -> y"]

[operator]
type = "Aside"
level = 1
category = "aside"
description = "an operator that the suite does not have"
initial = "none"

[tolerance.{dtype}]
atol = 1e-3
rtol = 1e-3

[[input]]
name = "x"
shape = ["rows", "columns"]
values = {{ kind = "normal", low = 0.0, high = 1.0 }}

[[output]]
name = "y"
shape = {shape}

[[case]]
id = "short"
sizes = {{ rows = 5, columns = 77 }}
dtype = "{dtype}"

[[case]]
id = "long"
sizes = {{ rows = 2, columns = 5001 }}
dtype = "float32"
"""


def _aside(
    folder: Path,
    body: str,
    shape: str = '["rows", "columns"]',
    dtype: str = "float32",
    sizes: tuple[tuple[int, int], ...] = ((5, 77), (2, 5001)),
    names: tuple[str, str] = ("x", "y"),
) -> OpSpec:
    """Return an operator of our own: y is what ``body`` returns for x; ``names`` are those of both."""
    manifest = MANIFEST.format(shape=shape, dtype=dtype)
    for (rows, columns), old in zip(
        sizes, ("rows = 5, columns = 77", "rows = 2, columns = 5001"), strict=True
    ):
        manifest = manifest.replace(old, f"rows = {rows}, columns = {columns}")
    for old, new in zip(("x", "y"), names, strict=True):
        manifest = manifest.replace(f'name = "{old}"', f'name = "{new}"').replace(f" {old} ", f" {new} ")
        manifest = manifest.replace(f'-> {old}"', f'-> {new}"')
        body = body.replace(f'"{old}"', f'"{new}"')
    if dtype != "float32":
        manifest = manifest.replace(
            "[[input]]", "[tolerance.float32]\natol = 1e-5\nrtol = 1e-4\n\n[[input]]", 1
        )
    (folder / "op.toml").write_text(manifest, encoding="utf-8")
    lines = ["import numpy as np", "", "", "def reference(inputs, attributes):"]
    lines += [f"    {line}" for line in [f'x = inputs["{names[0]}"].astype(np.float64)', *body.splitlines()]]
    (folder / "reference.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return load_operator("aside", op_dir=folder)


@pytest.mark.parametrize("name", sorted(SUITE))
def test_a_program_of_every_operator_is_verified_and_lowered(name):
    spec = SUITE[name]
    text = drafted(spec)
    assert text == drafted(spec)
    candidate = lower(verify(parse(text), interface_of(spec), (*spec.cases, *spec.hidden_cases)))
    assert f"Kernel{spec.op_type}" in candidate.kernel_text


@pytest.mark.parametrize("name", PATTERNS)
def test_an_interpreted_program_agrees_with_the_reference(name):
    spec = SUITE[name]
    smallest = min(spec.cases, key=lambda case: case.traffic_bytes)
    checked(spec, drafted(spec), (smallest,))


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ('return {"y": x * np.tanh(np.log1p(np.exp(x)))}', '["rows", "columns"]'),
        ('return {"y": (x - x.mean()) / x.std()}', '["rows", "columns"]'),
        ('m = x.max(axis=1)\nreturn {"y": np.log(np.exp(x - m[:, None]).sum(axis=1)) + m}', '["rows"]'),
        ('return {"y": np.cumsum(x, axis=0)}', '["rows", "columns"]'),
        ('return {"y": np.maximum.accumulate(x, axis=-1)}', '["rows", "columns"]'),
        ('return {"y": np.einsum("ij,ij->j", x, x)}', '["columns"]'),
        ('return {"y": np.prod(1.0 + 0.01 * x, axis=-1)}', '["rows"]'),
        (
            'm = x > 0.5\nreturn {"y": np.where(~m, x, 0.0) + np.where(np.maximum(x, 0.0), x, 1.0)}',
            '["rows", "columns"]',
        ),
    ],
    ids=[
        "mish",
        "whole tensor twice",
        "logsumexp",
        "sum down",
        "running maximum",
        "einsum",
        "product of rows",
        "conditions",
    ],
)
def test_references_that_the_suite_does_not_have_are_covered(tmp_path, body, shape):
    spec = _aside(tmp_path, body, shape)
    checked(spec, drafted(spec))


READ_ELSEWHERE = {
    "halves": ('h = x.shape[1] // 2\nreturn {"y": x[:, :h] * x[:, -h:]}', '["rows", "columns // 2"]'),
    "pairs": (
        'a, b = x[:, :-1:2], x[:, 1::2]\nreturn {"y": np.stack([a - b, a + b], axis=-1).reshape(len(x), -1)}',
        '["rows", "columns - columns % 2"]',
    ),
    "transposed": ('return {"y": x.T * 2.0}', '["columns", "rows"]'),
    "matrix product": ('return {"y": x @ x.T}', '["rows", "rows"]'),
    "joined": ('return {"y": np.concatenate([x, -x[:, :3]], axis=-1)}', '["rows", "columns + 3"]'),
    "borders": ('return {"y": np.pad(np.exp(x), ((1, 0), (2, 2)))}', '["rows + 1", "columns + 4"]'),
    "stencil": (
        "p = np.pad(x, ((1, 1), (1, 1)))\n"
        'return {"y": p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4.0 * x}',
        '["rows", "columns"]',
    ),
    "short loop": (
        "p = np.pad(x**2, ((0, 0), (2, 2)))\ny = np.zeros_like(x)\nfor k in range(5):\n"
        '    y += p[:, k : k + x.shape[1]]\nreturn {"y": x / np.sqrt(1.0 + y)}',
        '["rows", "columns"]',
    ),
    "loop as long as an axis": (
        'y = 0.0\nfor k in range(x.shape[0]):\n    y += x[k] * (k + 1.0)\nreturn {"y": y}',
        '["columns"]',
    ),
    "weighted windows": (
        "w = np.lib.stride_tricks.sliding_window_view(x, 3, axis=1)\n"
        'return {"y": np.einsum("rck,k->rc", w[:, ::2], np.arange(3) - 1.0)}',
        '["rows", "(columns - 1) // 2"]',
    ),
    "backwards": ('return {"y": x + x[:, ::-1]}', '["rows", "columns"]'),
    "repeated": ('return {"y": np.repeat(x, 3, axis=1)}', '["rows", "3 * columns"]'),
    "assigned": (
        'y = np.empty_like(x)\ny[:, 1:] = x[:, :-1]\ny[:, :1] = 7.0\nreturn {"y": y}',
        '["rows", "columns"]',
    ),
    "triangle": ('return {"y": np.tril(x @ x.T, -1)}', '["rows", "rows"]'),
    "place of the largest": ('return {"y": np.argmax(x, axis=1).astype(np.float32)}', '["rows"]'),
    "two largest": ('return {"y": np.sort(x, axis=1)[:, ::-1][:, :2]}', '["rows", "2"]'),
    "one row": ('return {"y": x[-1] - x[0, None, :].sum(axis=0)}', '["columns"]'),
    "conditions as numbers": ('return {"y": x * (x > 0) + (x < -1.0) * 0.5}', '["rows", "columns"]'),
    "limits by name": ('return {"y": np.clip(x, a_min=0.0, a_max=1.0)}', '["rows", "columns"]'),
    "differences down": ('return {"y": np.diff(x, 1, axis=0)}', '["rows - 1", "columns"]'),
    "place of the largest, sorted": (
        'return {"y": np.argsort(np.minimum(x, 0.5), axis=1, kind="stable")[:, -1].astype(np.float32)}',
        '["rows"]',
    ),
    "places of the two largest": (
        'return {"y": np.argsort(np.minimum(x, 0.5), axis=1, kind="stable")[:, ::-1][:, :2] * 1.0}',
        '["rows", "2"]',
    ),
    "places of the two smallest": (
        'return {"y": np.argsort(np.maximum(x, 0.5), axis=1, kind="stable")[:, :2].astype(np.float32)}',
        '["rows", "2"]',
    ),
    "rounded": ('return {"y": np.round(x * 3.0) + np.round(x * 1.0e7) * 1.0e-7}', '["rows", "columns"]'),
    "loop backwards": (
        'y = 0.0\nfor k in range(x.shape[0] - 1, 0, -2):\n    y += x[k] * (k + 1.0)\nreturn {"y": y}',
        '["columns"]',
    ),
    "weights backwards": ('return {"y": x * np.arange(x.shape[1], 0, -1)}', '["rows", "columns"]'),
    "loop that chooses": (
        'y = 0.0\nfor k in range(x.shape[0]):\n    y += np.where(k > 1, x[k], -x[k])\nreturn {"y": y}',
        '["columns"]',
    ),
    "loop that counts from the end": (
        'y = 0.0\nfor k in range(x.shape[0]):\n    y += x[-1 - k] * (k > 0)\nreturn {"y": y}',
        '["columns"]',
    ),
    "loop in a loop": (
        "y = 0.0\nfor k in range(x.shape[0]):\n    s = 0.0\n    for j in range(x.shape[1]):\n"
        '        s += x[k, j] * 0.1\n    y += s * s\nreturn {"y": x + y}',
        '["rows", "columns"]',
    ),
    "longer by zeros": ('return {"y": np.zeros_like(x) + x[:1]}', '["rows", "columns"]'),
    "one column assigned to all": (
        'y = np.zeros_like(x)\ny[:, 1:] = x[:, :1]\nreturn {"y": y}',
        '["rows", "columns"]',
    ),
    "sum longer by zeros": (
        'return {"y": (np.zeros_like(x) + x.sum(axis=0, keepdims=True)).sum(axis=0) * 0.1}',
        '["columns"]',
    ),
    "one number assigned to each row": (
        'y = np.zeros_like(x)\ny[:, 1:] = x.sum(axis=1, keepdims=True)\nreturn {"y": y}',
        '["rows", "columns"]',
    ),
    "one row assigned": (
        'y = x * 2.0\ny[:, 1:] = x[0, 1:]\nreturn {"y": y}',
        '["rows", "columns"]',
    ),
    "counted": (
        'return {"y": np.count_nonzero(np.where(x > 0, x, 0.0), axis=1).astype(np.float32)}',
        '["rows"]',
    ),
    "conditions put together in place": (
        'm = x > -1.0\nm &= x < 1.0\nreturn {"y": np.where(m, x, 0.0)}',
        '["rows", "columns"]',
    ),
    "product in place": (
        'y = x * 1.0\ny @= np.outer(x[0], x[1])\nreturn {"y": y * 0.001}',
        '["rows", "columns"]',
    ),
    "as whole numbers": (
        'return {"y": (x * 3.0).astype(np.int64) + (x > 0.0).astype(bool) * 1.0}',
        '["rows", "columns"]',
    ),
    "all axes turned": ('return {"y": x[:, :, None].T[0] * 2.0}', '["columns", "rows"]'),
    "sine": ('return {"y": np.sin(3.0 * x) + np.cos(x * 5.0)}', '["rows", "columns"]'),
}


@pytest.mark.parametrize(("body", "shape"), READ_ELSEWHERE.values(), ids=READ_ELSEWHERE)
def test_tensors_are_read_at_other_places_than_row_by_row(tmp_path, body, shape):
    columns = 1001 if "@=" in body else 3001  # the matrix of the product is square
    spec = _aside(tmp_path, body, shape, sizes=((5, 77), (2, columns)))
    checked(spec, drafted(spec))


@pytest.mark.parametrize(
    "body",
    [
        'return {"y": np.minimum.accumulate(x, axis=-1)}',
        'return {"y": np.flip(np.cumsum(np.flip(x * 0.5, axis=-1), axis=-1), axis=-1) - x}',
    ],
    ids=["forwards", "backwards, between other computations"],
)
def test_many_rows_are_scanned_as_lanes(tmp_path, body):
    spec = _aside(tmp_path, body, sizes=((70, 77), (64, 300)))
    text = drafted(spec)
    assert "rows_to_lanes" in text
    checked(spec, text)


@pytest.mark.parametrize("names", [("tile", "result"), ("n", "at"), ("t0", "first1"), ("load", "partials")])
def test_tensors_may_be_called_as_the_rules_call_their_own(tmp_path, names):
    body = 'e = np.exp(x - x.max(axis=-1, keepdims=True))\nreturn {"y": e / e.sum(axis=-1, keepdims=True)}'
    spec = _aside(tmp_path, body, names=names)
    text = drafted(spec)
    assert f"{names[0]}: gm[f32], {names[1]}: out[f32]" in text
    checked(spec, text)


def test_half_precision_is_computed_in_float(tmp_path):
    spec = _aside(tmp_path, 'return {"y": x / (1.0 + np.exp(-x))}', dtype="float16")
    text = drafted(spec)
    assert "x: gm[T]" in text
    checked(spec, text)


@pytest.mark.parametrize(
    ("body", "shape", "reason"),
    [
        ('return {"y": np.sort(x, axis=-1)}', '["rows", "columns"]', "sorting"),
        ('return {"y": np.sort(x, axis=-1)[:, :9]}', '["rows", "9"]', "first 4"),
        ('while True:\n    x = x * x\nreturn {"y": x}', '["rows", "columns"]', "more than 32 turns"),
        (
            'for k in range(x.shape[1]):\n    x = x * x\nreturn {"y": x}',
            '["rows", "columns"]',
            "go on from one another",
        ),
        ('if x.sum() > 0.0:\n    x = -x\nreturn {"y": x}', '["rows", "columns"]', "tensors decide"),
        ('return {"y": x * (not x)}', '["rows", "columns"]', "expression"),
        ('return {"y": np.pad(x, ((0, 0), (1, 1)), mode="wrap")}', '["rows", "columns + 2"]', "padding"),
        ('return {"y": np.pad(x, ((0, 0), (1, 1)))}', '["rows", "columns"]', "axes"),
        ('return {"y": np.cumsum(x, axis=1)[:, :-1]}', '["rows", "columns - 1"]', "part of a scan"),
        ('return {"y": x.sum(axis=1, where=x > 0.0)}', '["rows"]', "where"),
        ('return {"y": np.add(x, 1.0, where=x > 0.0)}', '["rows", "columns"]', "add with where="),
        ('return {"y": np.maximum(x, 1.0, where=x > 0.0)}', '["rows", "columns"]', "maximum with where="),
        ('return {"y": np.round(x, 2)}', '["rows", "columns"]', "round with these arguments"),
        ('return {"y": np.diff(x, 2)}', '["rows", "columns - 2"]', "differences of differences"),
        ('return {"y": x * int(2.7)}', '["rows", "columns"]', "int of what is not whole"),
        (
            'y, z = 0.0, 0.0\nfor k in range(x.shape[0]):\n    y += x[k]\n    z += y * x[k]\nreturn {"y": z}',
            '["columns"]',
            "go on from one another",
        ),
        (
            'y = 0.0\nfor k in range(x.shape[0]):\n    y += x[k]\n    y *= 1.0 + x[k]\nreturn {"y": y}',
            '["columns"]',
            "go on from one another",
        ),
        (
            "y = 0.0\nfor k in range(x.shape[0]):\n    for j in range(2):\n        y = x[k] * (j + 1.0)\n"
            'return {"y": y}',
            '["columns"]',
            "go on from one another",
        ),
        (
            'y = 0.0\nfor k in range(x.shape[0]):\n    y += x[k] * (2.0 if k > 0 else 1.0)\nreturn {"y": y}',
            '["columns"]',
            "tensors decide",
        ),
        (
            'y = 0.0\nfor k in range(x.shape[0]):\n    y += x[k - 1]\nreturn {"y": y}',
            '["columns"]',
            "some turns",
        ),
        (
            "y = 0.0\nfor k in range(x.shape[0]):\n    for j in range(k):\n        y += x[k, j]\n"
            'return {"y": x * y}',
            '["rows", "columns"]',
            "turn of a loop",
        ),
        (
            'y = 0.0\nfor k in range(x.shape[0]):\n    s = x[k]\n    y += s\nreturn {"y": y + s}',
            '["columns"]',
            "last turn",
        ),
        (
            'return {"y": np.flip(np.cumsum(np.flip(x, axis=0), axis=0), axis=0)}',
            '["rows", "columns"]',
            "backwards",
        ),
    ],
)
def test_what_is_not_covered_is_refused_with_the_reason(tmp_path, body, shape, reason):
    with pytest.raises(NotCoveredError, match=reason):
        drafted(_aside(tmp_path, body, shape))
