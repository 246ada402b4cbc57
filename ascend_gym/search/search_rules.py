"""What makes a search that search, beside its operator and its method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ascend_gym.core.records import MeasureProtocol


class Duplicates(str, Enum):
    """What a candidate costs that the run has proposed before; its result is known and not measured again."""

    CHARGED = "charged"
    FREE = "free"


@dataclass(frozen=True)
class SearchRules:
    """What makes a search that search, beside its operator; the journal's header has it.

    Attributes:
        duplicates: what proposing a known candidate costs.
        protocol: how to measure.
        settings: what else identifies the run: method, model, seed ...
        stop_after: charged evaluations in a row without a better one after which the search ends; ``None``
            for never. It is one of ``settings`` where it is set.
    """

    duplicates: Duplicates = Duplicates.CHARGED
    protocol: MeasureProtocol = field(default_factory=MeasureProtocol)
    settings: Mapping[str, Any] = field(default_factory=dict)
    stop_after: int | None = None

    def record(self) -> dict[str, Any]:
        """Return what the journal keeps of it."""
        rules = {"duplicates": self.duplicates.value, "protocol": self.protocol.model_dump(mode="json")}
        return {**self.settings, **rules}
