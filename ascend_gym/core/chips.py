"""The chips whose cycles can be counted, by the names that requests use."""

from __future__ import annotations

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.text import nearest

CHIPS = ("910B1", "910B2", "910B3", "910B4", "910_93")


def require_chip(name: str) -> str:
    """Return ``name`` if it is that of a chip.

    Raises:
        MisuseError: it is not; the message names those that exist.
    """
    if name not in CHIPS:
        raise MisuseError(f"no chip is named {name!r}{nearest(name, CHIPS)}; there are: {', '.join(CHIPS)}")
    return name
