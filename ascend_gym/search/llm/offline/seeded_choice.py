"""Weighted choices that are the same on every version of Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")


class SeededChoice:
    """Weighted choices that are the same on every version of Python."""

    def __init__(self, digest: str) -> None:
        self._random = random.Random(int(digest[:16], 16))

    def pick(self, items: Sequence[_Item], weight: Callable[[_Item], float]) -> _Item:
        """Return one of ``items``, each as likely as its weight says."""
        weights = [weight(item) for item in items]
        point = self._random.random() * sum(weights)
        for item, share in zip(items, weights, strict=True):
            point -= share
            if point < 0:
                return item
        return items[-1]
