"""Search methods by name, and the settings of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agents.ascend_craft.settings import Lowering
from agents.ascend_optimizer.settings import Ablation, Preset, Refinement, Schedule
from ascend_gym.cli import outside_methods
from ascend_gym.cli.agent import (
    LEXICAL_EMBEDDER,
    agent_identity,
    ascend_craft_of,
    ascend_optimizer_of,
    example_text,
)
from ascend_gym.cli.outside_methods import guarded
from ascend_gym.core.chips import own_chips
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Embedder, Strategy
from ascend_gym.core.records import OpSpec
from ascend_gym.core.toml_file import reason_of
from ascend_gym.search.ledger import Budget
from ascend_gym.search.llm import OFFLINE_MODEL, embedder_named
from ascend_gym.search.model_client import MAX_TOKENS, ModelClient
from ascend_gym.search.search_rules import Duplicates
from ascend_gym.staged.examples import Examples
from baselines.ppo_checkpoints import policy_digest, policy_path

_RECORDED_ELSEWHERE = {"operator", "op_dir", "chip", "chip_file", "duplicates", "checkpoint"}
_ADDED_LATER = {"lowering", "examples", "pass_builds", "builds", "tools"}  # there are journals without them


class Method(str, Enum):
    """Search methods of this package."""

    BEST_OF_N = "best-of-n"
    ITERATE = "iterate"
    OPENEVOLVE = "openevolve"
    GEPA = "gepa"
    ASCEND_OPTIMIZER = "ascend-optimizer"
    RANDOM_REWRITES = "random-rewrites"
    GREEDY_RULES = "greedy-rules"
    KNOB_SEARCH = "knob-search"
    PPO = "ppo"
    ASCEND_CRAFT = "ascend-craft"


class RunSettings(BaseModel):
    """All settings that affect the outcome of a run, and the location of its operator.

    Attributes:
        operator: name or id of the operator.
        op_dir: folder of an operator outside the suites.
        method: search method; for one from outside this package, a name that ``outside_methods`` resolves.
        budget: number of evaluations that may be spent.
        device_seconds: limit of device time; ``None`` for no limit.
        tokens: limit of tokens that models read and write; ``None`` for no limit.
        usd: limit of the models' cost in US dollars; ``None`` for no limit.
        price: price of the models at endpoints as ``IN,OUT`` or ``IN,OUT,CACHED``, in US dollars per million
            tokens.
        model: model of the search.
        offline_model: model for preparations made once per operator; ``None`` for ``model``.
        temperature: sampling temperature; ``None`` leaves it to the endpoint.
        reasoning_effort: the endpoint's name of a reasoning effort; ``None`` leaves it to the endpoint.
        max_tokens: maximum length of an answer, including reasoning.
        seed: seed of the run.
        chip: simulated or measured chip.
        chip_file: file of a chip of one's own, by which a resumed run finds it; ``None`` for a built-in one.
        duplicates: cost of proposing a known candidate.
        stop_after: evaluations in a row without a better one after which a run of any method ends; ``None``
            for never.
        preset: schedule of a paper for AscendOptimizer; ``None`` for ``schedule`` and lengths of our own.
        refinement: what AscendOptimizer's refinement asks and may change; ``None`` as in the papers for a
            preset and for the offline model, else for kernel and tiling program in one question.
        schedule: order of AscendOptimizer's stages.
        ablate: parts of AscendOptimizer to disable.
        bank: file of AscendOptimizer's experience bank; ``None`` for the included one.
        embedder: ``lexical``, ``minilm``, or an embedding model at the endpoint.
        tiling_steps: evaluations per pass of tiling search; ``None`` for 2, growing to a quarter of the
            budget, at most 10.
        refine_steps: evaluations per pass of kernel refinement; same default.
        rewind_steps: evaluations that AscendOptimizer first spends on rewinding the operator itself; ``None``
            for none, or for the preset's value.
        top_k: number of experiences shown to a step of kernel refinement.
        leave_one_out: whether experience with the operator itself and its near twins is left out.
        least_score: minimum similarity (cosine) of experience to a diagnosis; ``None`` for the
            embedder's default.
        islands: populations of AscendOptimizer's tiling search, or conversations of iterate.
        lowering: what translates AscendCraft's programs.
        examples: example that AscendCraft, best-of-n and iterate show for an operator without sources.
        pass_builds: whether AscendCraft builds after each pass of a model.
        builds: builds without an evaluation that AscendCraft may spend; ``None`` for any.
        tools: whether the model of iterate may look up calls and profiles before it answers.
        checkpoint: folder of the training, or one of its checkpoints, whose policy PPO uses.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    operator: str
    op_dir: str | None = None
    method: Annotated[Method | str, Field(union_mode="left_to_right")] = Method.BEST_OF_N
    budget: int = Field(default=20, ge=0)
    device_seconds: float | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)
    price: str | None = None
    model: str = OFFLINE_MODEL
    offline_model: str | None = None
    temperature: float | None = Field(default=None, ge=0)
    reasoning_effort: str | None = Field(default=None, min_length=1)
    max_tokens: int = Field(default=MAX_TOKENS, ge=1)
    seed: int = 0
    chip: str = "910B2"
    chip_file: str | None = Field(default=None, exclude_if=lambda value: value is None)
    duplicates: Duplicates = Duplicates.CHARGED
    stop_after: int | None = Field(default=None, ge=1, exclude_if=lambda value: value is None)
    preset: Preset | None = None
    refinement: Refinement | None = Field(default=None, exclude_if=lambda value: value is None)
    schedule: Schedule = Schedule.REFINE_THEN_TILE
    ablate: tuple[Ablation, ...] = ()
    bank: str | None = None
    embedder: str = LEXICAL_EMBEDDER
    tiling_steps: int | None = Field(default=None, ge=1)
    refine_steps: int | None = Field(default=None, ge=1)
    rewind_steps: int | None = Field(default=None, ge=0)
    top_k: int = Field(default=3, ge=1)
    leave_one_out: bool = True
    least_score: float | None = Field(default=None, ge=0, le=1)
    islands: int = Field(default=1, ge=1)
    lowering: Lowering = Lowering.RULES
    examples: Examples = Examples.NONE
    pass_builds: bool = True
    builds: int | None = Field(default=None, ge=0)
    tools: bool = False
    checkpoint: str | None = None

    @field_validator("method")
    @classmethod
    def _known(cls, method: Method | str) -> Method | str:
        if isinstance(method, Method):
            return method
        try:
            return outside_methods.resolved(method)
        except MisuseError as error:
            raise ValueError(f"{error}; ours: {', '.join(each.value for each in Method)}") from error

    @property
    def method_name(self) -> str:
        """Name of the method in tables."""
        return (
            self.method.value if isinstance(self.method, Method) else outside_methods.short_name(self.method)
        )

    @property
    def asks_language_model(self) -> bool:
        """Whether prompts are read by a language model, and not by the rules of the offline one."""
        return self.model != OFFLINE_MODEL

    @property
    def limits(self) -> Budget:
        """Budget of the run."""
        return Budget(self.budget, self.device_seconds, self.tokens, self.usd, self.builds)

    def identity(self) -> dict[str, Any]:
        """Return the settings that the journal's header does not contain otherwise."""
        is_agent = self.method is Method.ASCEND_OPTIMIZER
        settings = self.model_dump(mode="json", exclude=_RECORDED_ELSEWHERE | self._left_out())
        if not isinstance(self.method, Method):
            return {**settings, **outside_methods.identity(self.method)}
        if self.method is Method.PPO:
            return {**settings, "policy": policy_digest(checkpoint_of(self))}
        return {**settings, **agent_identity(self)} if is_agent else settings

    def unused(self) -> str:
        """Say which settings were given that the method does not use; empty if there are none.

        A method from outside this package may use any.
        """
        if not isinstance(self.method, Method):
            return ""
        fields = type(self).model_fields
        others = _of_single_methods() - BUILT_IN[self.method].settings
        given = [name for name in fields if name in others and getattr(self, name) != fields[name].default]
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        return f"{self.method.value} does not use {options}" if given else ""

    def _left_out(self) -> Set[str]:
        """Return the settings of other methods, and those that are recorded only where they are used."""
        of_methods = _of_single_methods() - _RECORDED_ELSEWHERE
        own: Set[str]
        only_where_used: Set[str]
        if isinstance(self.method, Method):
            own, only_where_used = BUILT_IN[self.method].settings, _ADDED_LATER
        else:
            own = only_where_used = of_methods
        fields = type(self).model_fields
        at_default = {name for name in only_where_used if getattr(self, name) == fields[name].default}
        return (of_methods - own) | at_default


def _of_single_methods() -> frozenset[str]:
    return frozenset().union(*(each.settings for each in BUILT_IN.values()))


def run_settings(**settings: Any) -> RunSettings:
    """Return the settings of a run from command-line options.

    Args:
        settings: options by name; ``None`` means the default, and paths are relative to the working
            directory.

    Raises:
        MisuseError: an option has an invalid value.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if (chip_file := own_chips().get(given.get("chip", ""))) is not None:
        given["chip_file"] = chip_file
    paths = {name: str(value.resolve()) for name, value in given.items() if isinstance(value, Path)}
    try:
        return RunSettings.model_validate({**given, **paths})
    except ValidationError as error:
        first = error.errors()[0]
        option = str(first["loc"][0]).replace("_", "-")
        raise MisuseError(f"--{option} {first['input']!r}: {reason_of(error)}") from error


@dataclass(frozen=True)
class Setting:
    """Everything that a method is composed of.

    Attributes:
        spec: operator.
        settings: settings of the run.
        online: asks the model of the search.
        offline: asks the model for preparations made once per operator.
        embedder: returns the embedding model of a given name.
    """

    spec: OpSpec
    settings: RunSettings
    online: ModelClient
    offline: ModelClient
    embedder: Callable[[str], Embedder] = embedder_named


def factory_of(method: Method | str) -> Callable[[Setting], Strategy]:
    """Return what composes the strategies of a method.

    Raises:
        MisuseError: it is one from outside this package that cannot be imported.
    """
    if isinstance(method, Method):
        return BUILT_IN[method].compose
    return guarded(outside_methods.told_name(method), outside_methods.load(method))


def _best_of_n(setting: Setting) -> Strategy:
    from baselines.best_of_n import BestOfN

    settings = setting.settings
    example = example_text(setting.spec, settings.examples)
    return BestOfN(
        setting.spec,
        setting.online,
        samples=settings.budget,
        example=example,
        fold=settings.asks_language_model,
    )


def _iterate(setting: Setting) -> Strategy:
    from baselines.iterate import Iterate

    settings = setting.settings
    return Iterate(
        setting.spec,
        setting.online,
        budget=settings.budget,
        islands=settings.islands,
        example=example_text(setting.spec, settings.examples),
        tools=settings.tools,
        concise=settings.asks_language_model,
    )


def _openevolve(setting: Setting) -> Strategy:
    from baselines.openevolve import Evolution, OpenEvolve

    settings = setting.settings
    evolution = Evolution.within(settings.budget)
    return OpenEvolve(setting.spec, setting.online, seed=settings.seed, evolution=evolution)


def _gepa(setting: Setting) -> Strategy:
    from baselines.gepa import Gepa

    return Gepa(setting.spec, setting.online, seed=setting.settings.seed)


def _random_rewrites(setting: Setting) -> Strategy:
    from baselines.random_rewrites import RandomRewrites

    return RandomRewrites(setting.spec, seed=setting.settings.seed)


def _greedy_rules(setting: Setting) -> Strategy:
    from baselines.greedy_rules import GreedyRules

    return GreedyRules(setting.spec)


def _knob_search(setting: Setting) -> Strategy:
    try:
        from baselines.knob_search import KnobSearch
    except ModuleNotFoundError as error:
        if error.name != "optuna":
            raise
        raise MisuseError("knob-search needs Optuna: pip install 'ascend-gym[knobs]'") from error
    return KnobSearch(setting.spec, seed=setting.settings.seed)


def _ppo(setting: Setting) -> Strategy:
    path = policy_path(checkpoint_of(setting.settings))
    with needing_training_packages("method ppo"):
        from baselines.ppo_policy import load_policy
        from baselines.ppo_search import PpoSearch
    settings = setting.settings
    return PpoSearch(
        setting.spec, load_policy(path), seed=settings.seed, budget=settings.budget, chip=settings.chip
    )


def checkpoint_of(settings: RunSettings) -> Path:
    """Return the folder with the policy of a PPO run.

    Raises:
        MisuseError: the settings name none.
    """
    if settings.checkpoint is None:
        raise MisuseError("method ppo needs --checkpoint DIR, the folder of 'ascend-gym train'")
    return Path(settings.checkpoint)


@contextmanager
def needing_training_packages(what: str) -> Iterator[None]:
    """Convert a missing package of others, such as Ray or what RLlib needs, into advice on what to install.

    Raises:
        MisuseError: one is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("ascend_gym", "baselines"):
            raise
        raise MisuseError(f"{what} needs {error.name}: pip install 'ascend-gym[train]'") from error


@dataclass(frozen=True)
class BuiltIn:
    """All that is declared of a method of this package, besides its name.

    Attributes:
        module: where it is.
        compose: returns its strategy for a run.
        settings: settings of single methods that it uses.
        writes_sources: whether its model writes sources, and not another language.
    """

    module: str
    compose: Callable[[Setting], Strategy]
    settings: frozenset[str] = frozenset()
    writes_sources: bool = False


BUILT_IN: dict[Method, BuiltIn] = {
    Method.BEST_OF_N: BuiltIn(
        "baselines.best_of_n", _best_of_n, settings=frozenset({"examples"}), writes_sources=True
    ),
    Method.ITERATE: BuiltIn(
        "baselines.iterate",
        _iterate,
        settings=frozenset({"islands", "examples", "tools"}),
        writes_sources=True,
    ),
    Method.OPENEVOLVE: BuiltIn("baselines.openevolve", _openevolve, writes_sources=True),
    Method.GEPA: BuiltIn("baselines.gepa", _gepa, writes_sources=True),
    Method.ASCEND_OPTIMIZER: BuiltIn(
        "agents.ascend_optimizer.agent",
        ascend_optimizer_of,
        settings=frozenset(
            {
                "preset",
                "refinement",
                "schedule",
                "ablate",
                "bank",
                "embedder",
                "tiling_steps",
                "refine_steps",
                "rewind_steps",
                "top_k",
                "leave_one_out",
                "least_score",
                "islands",
            }
        ),
        writes_sources=True,
    ),
    Method.RANDOM_REWRITES: BuiltIn("baselines.random_rewrites", _random_rewrites),
    Method.GREEDY_RULES: BuiltIn("baselines.greedy_rules", _greedy_rules),
    Method.KNOB_SEARCH: BuiltIn("baselines.knob_search", _knob_search),
    Method.PPO: BuiltIn("baselines.ppo_search", _ppo, settings=frozenset({"checkpoint"})),
    Method.ASCEND_CRAFT: BuiltIn(
        "agents.ascend_craft.agent",
        ascend_craft_of,
        settings=frozenset({"lowering", "examples", "pass_builds", "builds"}),
    ),
}
