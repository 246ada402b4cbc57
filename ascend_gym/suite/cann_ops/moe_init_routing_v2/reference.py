"""Reference of MoeInitRoutingV2 without dropping."""

from __future__ import annotations

from typing import Any

import numpy as np


def reference(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    choices = inputs["expert_idx"].shape[1]
    experts = inputs["expert_idx"].reshape(-1)
    order = np.argsort(experts, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    counts = np.bincount(experts, minlength=attributes["expert_num"])
    return {
        "expanded_x": inputs["x"][order // choices],
        "expanded_row_idx": place,
        "expert_tokens_count_or_cumsum": np.cumsum(counts),
    }
