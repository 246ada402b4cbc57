"""Which categories of the ``core`` suite agents learn on, choose on, and are tested on; docs/benchmark.md."""

from __future__ import annotations

from collections.abc import Mapping

SPLITS: Mapping[str, tuple[str, ...]] = {
    "train": (
        *("broadcast", "comparison", "construction", "conversion", "elementwise", "foreach", "indexing"),
        *("matmul", "optimizer", "pooling", "reduction"),
    ),
    "validation": ("loss", "quantization", "resize", "scan"),
    "test": ("activation", "attention", "fused", "normalization", "sorting"),
}
"""Split by whole categories, so that no operator of the test part has a near relative in the others."""


def split_of(category: str) -> str | None:
    """Return the part that a category belongs to; ``None`` for one of no split."""
    return next((name for name, categories in SPLITS.items() if category in categories), None)
