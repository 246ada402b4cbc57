"""Composes the construction of an experience bank over a suite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ascend_gym.cli.methods import RunSettings
from ascend_gym.cli.models import ModelAccess, opened_models
from ascend_gym.cli.options import opened_evaluator
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import OpSpec
from ascend_gym.search.ledger import BudgetLedger
from ascend_gym.search.outcome import Step
from ascend_gym.suite.loader import list_operators, load_operator

if TYPE_CHECKING:
    from agents.ascend_optimizer.bank import ExperienceBank
    from agents.ascend_optimizer.construction import ConstructionResult, ConstructionSettings
    from agents.ascend_optimizer.experience import Experience

Tell = Callable[[str], None]

_OF_MODELS = {
    "budget",
    "device_seconds",
    "tokens",
    "usd",
    "price",
    "model",
    "temperature",
    "reasoning_effort",
    "max_tokens",
    "seed",
}


@dataclass(frozen=True)
class BuildRequest:
    """Specification of a bank.

    Attributes:
        suite: suite whose operators are rewound.
        operators: names of the operators; empty for all of the suite.
        runs: folders of searches whose best candidates are rewound.
        settings: settings that determine the experience of each operator.
        out: output file.
    """

    suite: str
    operators: tuple[str, ...]
    runs: tuple[Path, ...]
    settings: ConstructionSettings
    out: Path

    def specs(self) -> list[OpSpec]:
        """Return the operators, each with its strongest known implementation as baseline."""
        from agents.ascend_optimizer.strongest import strongest_known

        named = [load_operator(name) for name in self.operators] or list_operators(self.suite)
        return [spec.model_copy(update={"baseline": strongest_known(spec, self.runs)}) for spec in named]


def build_bank(
    request: BuildRequest, access: ModelAccess, daemons: Sequence[str] | None, tell: Tell
) -> ExperienceBank:
    """Build a bank, or resume building it, and write it to ``request.out``.

    Args:
        request: specification of the bank.
        access: how to reach models.
        daemons: addresses of daemons; ``None`` for a private one.
        tell: called with each line of progress.

    Raises:
        MisuseError: an operator cannot be rewound, or the folder belongs to another construction.
        InfrastructureError: evaluator or model failed; call again to resume.
        KeyboardInterrupt: interrupted; call again to resume.
    """
    from agents.ascend_optimizer.bank import ExperienceBank

    experiences: list[Experience] = []
    specs = request.specs()
    with opened_evaluator(daemons, request.settings.chip) as evaluator:
        for spec in specs:
            harvest = _harvested(spec, request, access, evaluator, tell)
            tell(
                f"{spec.op_id}: {harvest.steps} validated pairs in {harvest.evaluations} evaluations, "
                f"tau_noise {harvest.noise.tau_noise:.2%}"
            )
            experiences += harvest.experiences
    if not experiences:
        raise MisuseError("no rewind was validated: raise --budget, or name other operators")
    bank = ExperienceBank(experiences).in_order()
    bank.save(request.out)
    return bank


def _harvested(
    spec: OpSpec, request: BuildRequest, access: ModelAccess, evaluator: Evaluator, tell: Tell
) -> ConstructionResult:
    from agents.ascend_optimizer.construction import construct

    settings = request.settings
    folder = request.out.with_name(f"{request.out.name}.build") / spec.op_id.replace("/", "-")
    folder.mkdir(parents=True, exist_ok=True)
    models = RunSettings(operator=spec.op_id, **settings.model_dump(include=_OF_MODELS))
    ledger = BudgetLedger(models.limits)

    def told(step: Step) -> None:
        tell(_line(spec, step, settings.budget))

    with opened_models(models, access, ledger, folder) as opened:
        harvest = construct(spec, opened.offline, evaluator, ledger, folder, settings, on_event=told)
    for problem in harvest.problems:
        tell(f"{spec.op_id}: a pair was not distilled: {problem}")
    return harvest


def _line(spec: OpSpec, step: Step, budget: int) -> str:
    """Describe the outcome of an evaluation in one line."""
    origin, result = step.proposal.origin, step.result
    what = f"{origin['kind']} {origin.get('motif', '')}".strip()
    ended = result.status.value if result.latency_us is None else f"{result.latency_us:.2f} us"
    return f"{spec.op_id} {step.spent.evaluations}/{budget} {what}: {ended}"
