"""The search methods by name, and what a run of one needs to be told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict

from ascend_gym.core.protocols import Strategy
from ascend_gym.core.records import OpSpec
from ascend_gym.search.asker import Asker
from ascend_gym.search.driver import Duplicates
from ascend_gym.search.ledger import Budget
from ascend_gym.search.llm import OFFLINE_MODEL, model_named


class Method(str, Enum):
    """The search methods."""

    BEST_OF_N = "best-of-n"


class RunSettings(BaseModel):
    """Everything that decides the outcome of a run, and where its operator lies.

    Attributes:
        operator: name or id of the operator.
        op_dir: folder of an operator outside of the suites.
        method: search method.
        budget: evaluations that may be spent.
        model: model of the search.
        seed: seed of the run.
        chip: chip whose cycles are counted.
        duplicates: what proposing a known candidate costs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    operator: str
    op_dir: str | None = None
    method: Method = Method.BEST_OF_N
    budget: int = 20
    model: str = OFFLINE_MODEL
    seed: int = 0
    chip: str = "910B2"
    duplicates: Duplicates = Duplicates.CHARGED

    @property
    def limits(self) -> Budget:
        """What the run may spend."""
        return Budget(self.budget)

    def identity(self) -> dict[str, Any]:
        """Return the settings that the journal's header does not tell otherwise."""
        return self.model_dump(mode="json", exclude={"operator", "op_dir", "chip", "duplicates"})


@dataclass(frozen=True)
class Setting:
    """What a method is composed of.

    Attributes:
        spec: the operator.
        settings: settings of the run.
        online: asks the model of the search.
    """

    spec: OpSpec
    settings: RunSettings
    online: Asker


def strategy_of(spec: OpSpec, settings: RunSettings, *, concurrency: int = 1) -> Strategy:
    """Compose the strategy that ``settings`` name.

    Raises:
        MisuseError: a model or a package that the method needs is not at hand.
    """
    online = Asker(model_named(settings.model), seed=settings.seed, concurrency=concurrency)
    return _FACTORIES[settings.method](Setting(spec, settings, online))


def _best_of_n(setting: Setting) -> Strategy:
    from baselines.best_of_n import BestOfN

    return BestOfN(setting.spec, setting.online, samples=setting.settings.budget)


_FACTORIES: dict[Method, Callable[[Setting], Strategy]] = {Method.BEST_OF_N: _best_of_n}
