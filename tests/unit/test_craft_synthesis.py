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


def _aside(folder: Path, body: str, shape: str = '["rows", "columns"]', dtype: str = "float32") -> OpSpec:
    """Return an operator of our own: y is what ``body`` returns for x."""
    manifest = MANIFEST.format(shape=shape, dtype=dtype)
    if dtype != "float32":
        manifest = manifest.replace(
            "[[input]]", "[tolerance.float32]\natol = 1e-5\nrtol = 1e-4\n\n[[input]]", 1
        )
    (folder / "op.toml").write_text(manifest, encoding="utf-8")
    lines = ["import numpy as np", "", "", "def reference(inputs, attributes):"]
    lines += [f"    {line}" for line in ['x = inputs["x"].astype(np.float64)', *body.splitlines()]]
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
    ],
    ids=[
        "mish",
        "whole tensor twice",
        "logsumexp",
        "sum down",
        "running maximum",
        "einsum",
        "product of rows",
    ],
)
def test_references_that_the_suite_does_not_have_are_covered(tmp_path, body, shape):
    spec = _aside(tmp_path, body, shape)
    checked(spec, drafted(spec))


def test_half_precision_is_computed_in_float(tmp_path):
    spec = _aside(tmp_path, 'return {"y": x / (1.0 + np.exp(-x))}', dtype="float16")
    text = drafted(spec)
    assert "x: gm[T]" in text
    checked(spec, text)


@pytest.mark.parametrize(
    ("body", "shape", "reason"),
    [
        ('return {"y": x.T}', '["columns", "rows"]', "transposes"),
        ('return {"y": x @ x.T}', '["rows", "rows"]', "operator"),
        ('return {"y": np.sort(x, axis=-1)}', '["rows", "columns"]', "sort"),
        ('for k in range(3):\n    x = x * x\nreturn {"y": x}', '["rows", "columns"]', "statement"),
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
