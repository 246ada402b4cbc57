"""What a sweep consists of: operators x methods x seeds x budgets x chips, all with equal budgets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.toml_file import read_toml
from ascend_gym.search.driver import Duplicates
from ascend_gym.suite.loader import is_suite, list_operators, load_operator

SUITES = ("core", "cann-ops")
_PATTERN_SIGNS = frozenset("*?[")


class Limits(BaseModel):
    """What every run of the sweep may spend besides evaluations, and what a known candidate costs."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    device_seconds: float | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)
    price: str | None = None
    duplicates: Duplicates = Duplicates.CHARGED


class SweepPlan(BaseModel):
    """Everything that decides the outcome of a sweep.

    Attributes:
        operators: suites, names, or patterns such as ``cann-ops/foreach_*``.
        methods: methods, or variants such as ``ascend-optimizer:no-experience``.
        seeds: seeds of the runs.
        budgets: evaluations that a run may spend; each method has runs with each.
        chips: chips whose cycles are counted.
        model: model of the searches.
        offline_model: model of what is prepared once for an operator; ``None`` for ``model``.
        temperature: sampling temperature.
        limits: what runs may spend besides.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    operators: tuple[str, ...] = Field(default=("core",), min_length=1)
    methods: tuple[str, ...] = Field(min_length=1)
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    budgets: tuple[int, ...] = Field(default=(20,), min_length=1)
    chips: tuple[str, ...] = Field(default=("910B2",), min_length=1)
    model: str = "offline"
    offline_model: str | None = None
    temperature: float | None = Field(default=None, ge=0)
    limits: Limits = Limits()

    @field_validator("operators", "methods", "seeds", "budgets", "chips")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(values))

    @field_validator("budgets")
    @classmethod
    def _positive(cls, budgets: tuple[int, ...]) -> tuple[int, ...]:
        if min(budgets) < 1:
            raise ValueError(f"expected budgets of at least 1 evaluation, got {min(budgets)}")
        return budgets

    def cells(self) -> Iterator[Cell]:
        """Yield the runs, those of one operator and seed next to each other.

        Raises:
            MisuseError: an operator is not known, or a pattern fits none.
        """
        operators = matching_operators(self.operators)
        rounds = product(self.chips, self.budgets, self.seeds, operators, self.methods)
        for chip, budget, seed, operator, method in rounds:
            yield Cell(method, operator, seed, budget, chip)

    def common_settings(self) -> dict[str, Any]:
        """Return what the settings of all runs have in common."""
        models = {"model": self.model, "offline_model": self.offline_model, "temperature": self.temperature}
        return {**models, **self.limits.model_dump()}


@dataclass(frozen=True)
class Cell:
    """One run of a sweep."""

    method: str
    operator: str
    seed: int
    budget: int
    chip: str

    @property
    def folder(self) -> str:
        """Its folder below that of the sweep."""
        names = (self.method, self.operator, f"{self.chip}-budget{self.budget}-seed{self.seed}")
        return "/".join(name.replace("/", "_") for name in names)


def read_plan(path: Path | None, **flags: Any) -> SweepPlan:
    """Read a plan from a TOML file, with ``flags`` in place of what the file says; ``None`` sets nothing.

    Raises:
        MisuseError: the file cannot be read, or the plan makes no sense.
    """
    try:
        told = read_toml(path) if path is not None else {}
    except (OSError, ValueError) as error:
        raise MisuseError(f"{path}: expected a TOML file: {error}") from error
    limits = {name: flags.pop(name) for name in Limits.model_fields if name in flags}
    given = {name: value for name, value in flags.items() if value not in (None, [], ())}
    told_limits = {**told.get("limits", {}), **{k: v for k, v in limits.items() if v is not None}}
    try:
        return SweepPlan.model_validate({**told, **given, "limits": told_limits})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise MisuseError(
            f"{path or 'the sweep'}: {where}: {first['msg']}, got {first['input']!r}"
        ) from error


def matching_operators(names: Iterable[str]) -> list[str]:
    """Return the ids of the operators that suites, names and patterns stand for, each once.

    Raises:
        MisuseError: a name is not known, or a pattern fits none.
    """
    return list(dict.fromkeys(op_id for name in names for op_id in _matching(name)))


def _matching(name: str) -> list[str]:
    if is_suite(name):
        return [spec.op_id for spec in list_operators(name)]
    if not _PATTERN_SIGNS & set(name):
        return [load_operator(name).op_id]
    known = [spec.op_id for suite in SUITES for spec in list_operators(suite)]
    found = [
        op_id for op_id in known if fnmatchcase(op_id, name) or fnmatchcase(op_id.partition("/")[2], name)
    ]
    if not found:
        raise MisuseError(f"no operator fits {name!r}; 'ascend-gym suite list' shows those of a suite")
    return found
