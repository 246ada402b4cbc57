"""Reference of FlashAttentionScoreWithLargeHeadDim."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    query, key, value = (inputs[name].astype(np.float64) for name in ("query", "key", "value"))
    scores = query @ key.transpose(0, 2, 1) * attributes["scale_value"]
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return {"attention_out": shares @ value / shares.sum(axis=-1, keepdims=True)}
