"""The plan of a sweep: operators x methods x seeds x budgets x chips, all with equal budgets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ascend_gym.core.chips import own_chips, recall_chip, require_chip
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.toml_file import first_problem, read_toml
from ascend_gym.search.model_client import MAX_TOKENS
from ascend_gym.search.search_rules import Duplicates
from ascend_gym.suite.loader import is_suite, list_operators, load_operator, ready_names

SUITES = ("core", "cann-ops")
_DEFAULT_OPERATORS = ("core",)
_PATTERN_SIGNS = frozenset("*?[")


class Limits(BaseModel):
    """Further limits of every run, and the cost of duplicate candidates."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    device_seconds: float | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)
    price: str | None = None
    duplicates: Duplicates = Duplicates.CHARGED
    stop_after: int | None = Field(default=None, ge=1, exclude_if=lambda value: value is None)


class SweepPlan(BaseModel):
    """All settings that affect the outcome of a sweep.

    Attributes:
        operators: suites, names, or patterns such as ``cann-ops/foreach_*``.
        op_dirs: folders of operators outside the suites, each named like its operator.
        methods: methods, or variants such as ``ascend-optimizer:no-experience``.
        seeds: seeds of the runs.
        budgets: numbers of evaluations; each method has runs with each budget.
        chips: simulated or measured chips.
        chip_files: files of those that are one's own, by chip, so that a resumed sweep finds them.
        model: model of the searches.
        offline_model: model for preparations made once per operator; ``None`` for ``model``.
        temperature: sampling temperature.
        reasoning_effort: how much a model may reason; ``None`` leaves it to the endpoint.
        max_tokens: maximum length of an answer, including reasoning.
        limits: further limits of every run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    op_dirs: tuple[str, ...] = ()
    operators: tuple[str, ...] = Field(
        default_factory=lambda given: () if given.get("op_dirs") else _DEFAULT_OPERATORS
    )
    methods: tuple[str, ...] = Field(min_length=1)
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    budgets: tuple[int, ...] = Field(default=(20,), min_length=1)
    chips: tuple[str, ...] = Field(default=("910B2",), min_length=1)
    chip_files: dict[str, str] = Field(
        default_factory=lambda given: _files_of(given.get("chips", ())), exclude_if=lambda files: not files
    )
    model: str = "offline"
    offline_model: str | None = None
    temperature: float | None = Field(default=None, ge=0)
    reasoning_effort: str | None = Field(default=None, min_length=1)
    max_tokens: int = Field(default=MAX_TOKENS, ge=1)
    limits: Limits = Limits()

    @field_validator("op_dirs")
    @classmethod
    def _absolute(cls, folders: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(Path(folder).resolve()) for folder in folders))

    @field_validator("operators", "methods", "seeds", "budgets", "chips")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(values))

    @model_validator(mode="after")
    def _any_operator(self) -> SweepPlan:
        if not self.operators and not self.op_dirs:
            raise ValueError("expected at least one operator, in operators or op_dirs")
        return self

    @model_validator(mode="before")
    @classmethod
    def _with_own_chips(cls, given: Any) -> Any:
        for chip, path in given.get("chip_files", {}).items():
            recall_chip(chip, Path(path), "sweep")
        return given

    @field_validator("chips")
    @classmethod
    def _known(cls, chips: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(require_chip, chips))

    @field_validator("budgets")
    @classmethod
    def _positive(cls, budgets: tuple[int, ...]) -> tuple[int, ...]:
        if min(budgets) < 1:
            raise ValueError(f"expected budgets of at least 1 evaluation, got {min(budgets)}")
        return budgets

    def runs(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield method and settings of each run, with those of one operator and seed next to each other.

        Raises:
            MisuseError: an operator is unknown, or a pattern matches none.
        """
        operators = {**dict.fromkeys(matching_operators(self.operators)), **own_operators(self.op_dirs)}
        common = self.common_settings()
        rounds = product(self.chips, self.budgets, self.seeds, operators.items(), self.methods)
        for chip, budget, seed, (operator, folder), method in rounds:
            own = {"operator": operator, "op_dir": folder, "seed": seed, "budget": budget, "chip": chip}
            yield method, {**common, **own}

    def common_settings(self) -> dict[str, Any]:
        """Return the settings that all runs share."""
        names = {"model", "offline_model", "temperature", "reasoning_effort", "max_tokens"}
        return {**self.model_dump(include=names), **dict(self.limits)}


def _files_of(chips: Iterable[str]) -> dict[str, str]:
    own = own_chips()
    return {chip: str(own[chip]) for chip in chips if chip in own}


def read_plan(path: Path | None, **flags: Any) -> SweepPlan:
    """Read a plan from a TOML file; ``flags`` override the file unless they are ``None``.

    Raises:
        MisuseError: the file cannot be read, or the plan is invalid.
    """
    try:
        in_file = read_toml(path) if path is not None else {}
    except (OSError, ValueError) as error:
        raise MisuseError(f"{path}: expected a TOML file: {error}") from error
    if not isinstance(in_file.get("limits", {}), dict):
        raise MisuseError(f"{path}: limits: expected a table [limits], got {in_file['limits']!r}")
    limits = {name: flags.pop(name) for name in Limits.model_fields if name in flags}
    given = {name: value for name, value in flags.items() if value not in (None, [], ())}
    all_limits = {**in_file.get("limits", {}), **{k: v for k, v in limits.items() if v is not None}}
    try:
        return SweepPlan.model_validate({**in_file, **given, "limits": all_limits})
    except ValidationError as error:
        where, reason = first_problem(error, SweepPlan)
        raise MisuseError(f"{path or 'the sweep'}: {where}: {reason}") from error


def matching_operators(names: Iterable[str]) -> list[str]:
    """Return the ids of the operators that suites, names and patterns match, without duplicates.

    Raises:
        MisuseError: a name is unknown, or a pattern matches none.
    """
    return list(dict.fromkeys(op_id for name in names for op_id in _matching(name)))


def own_operators(folders: Iterable[str]) -> dict[str, str]:
    """Return the folders of operators outside the suites by operator id.

    Raises:
        MisuseError: a folder is not an operator's, or two have the same name.
    """
    own: dict[str, str] = {}
    for folder in folders:
        op_id = load_operator(Path(folder).name, op_dir=Path(folder)).op_id
        if own.setdefault(op_id, folder) != folder:
            raise MisuseError(
                f"two operators are called {op_id}: {own[op_id]} and {folder}; rename one folder"
            )
    return own


def _matching(name: str) -> list[str]:
    if is_suite(name):
        ready = [spec.op_id for spec in list_operators(name)]
        if not ready:
            raise MisuseError(
                f"suite {name!r} has no operator that is ready: import a checkout with 'ascend-gym suite "
                f"import --cann-ops DIR' (docs/own_operator.md); 'ascend-gym suite list {name}' says what is "
                "missing"
            )
        return ready
    if not _PATTERN_SIGNS & set(name):
        return [load_operator(name).op_id]
    known = [f"{suite}/{operator}" for suite in SUITES for operator in ready_names(suite)]
    found = [
        op_id for op_id in known if fnmatchcase(op_id, name) or fnmatchcase(op_id.partition("/")[2], name)
    ]
    if not found:
        raise MisuseError(f"no operator fits {name!r}; 'ascend-gym suite list' shows those of a suite")
    return found
