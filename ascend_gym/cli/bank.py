"""``ascend-gym bank``: build, inspect, query, merge and export experience banks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascend_gym.cli.methods import RunSettings
from ascend_gym.cli.models import ModelAccess, opened_models
from ascend_gym.cli.options import EXIT_INTERRUPTED, Chip, Daemon, Json, console, note, opened_evaluator
from ascend_gym.cli.search_options import EndpointOptions, MaxTokens, RunLimits, Sampling
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.option_groups import flat, grouped
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import OpSpec
from ascend_gym.report.summary import to_json
from ascend_gym.search.ledger import BudgetLedger
from ascend_gym.search.model_client import MAX_TOKENS
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

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Build and inspect experience banks.")
BankFile = Annotated[
    Path | None, typer.Option("--bank", metavar="FILE", help="Bank; by default the included one.")
]
_FOLDER = typer.Option(
    exists=True, file_okay=False, metavar="DIR", help="Search whose best candidate is rewound; repeatable."
)


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
        from agents.ascend_optimizer.construction import strongest_known

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

    def report(step: Step) -> None:
        tell(_line(spec, step, settings.budget))

    with opened_models(models, access, ledger, folder) as opened:
        harvest = construct(spec, opened.offline, evaluator, ledger, folder, settings, on_event=report)
    for problem in harvest.problems:
        tell(f"{spec.op_id}: a pair was not distilled: {problem}")
    return harvest


def _line(spec: OpSpec, step: Step, budget: int) -> str:
    """Describe the outcome of an evaluation in one line."""
    origin, result = step.proposal.origin, step.result
    what = f"{origin['kind']} {origin.get('motif', '')}".strip()
    ended = result.status.value if result.latency_us is None else f"{result.latency_us:.2f} us"
    return f"{spec.op_id} {step.spent.evaluations}/{budget} {what}: {ended}"


class BankFormat(str, Enum):
    """Export format of a bank."""

    MARKDOWN = "md"
    JSON = "json"


@dataclass(frozen=True)
class Construction:
    """What is rewound, and how far."""

    suite: Annotated[str, typer.Option(help="Suite whose operators are rewound.")] = "core"
    op: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this one; repeatable.")] = None
    budget: Annotated[int, typer.Option(min=1, help="Evaluations for each operator.")] = 20
    strengthen: Annotated[
        int, typer.Option(min=0, help="Part of the budget for a faster starting point, by greedy rewriting.")
    ] = 0
    length: Annotated[int, typer.Option(min=1, help="Maximum steps of a trajectory.")] = 8
    patience: Annotated[int, typer.Option(min=1, help="Consecutive failures that end a trajectory.")] = 4
    max_slowdown: Annotated[
        float, typer.Option(min=1, help="Slowdown factor at which a trajectory ends.")
    ] = 8.0
    runs: Annotated[list[Path] | None, _FOLDER] = None
    model: Annotated[str, typer.Option(help="'offline', or a model at the endpoint.")] = "offline"
    max_tokens: MaxTokens = MAX_TOKENS
    seed: Annotated[int, typer.Option(help="Seed of the construction.")] = 0
    chip: Chip = "910B2"


@app.command("build")
@grouped
def bank_build(
    work: Construction,
    sampling: Sampling,
    limits: RunLimits,
    endpoint: EndpointOptions,
    daemon: Daemon = None,
    out: Annotated[Path, typer.Option(metavar="FILE", dir_okay=False, help="File of the bank.")] = Path(
        "bank.jsonl"
    ),
) -> None:
    """Rewind operators and distil the value of each motif; repeat the command to resume it.

    Limits apply to each operator.

    Journals and lessons are stored in FILE.build. --runs names searches whose best candidates are rewound.
    """
    from agents.ascend_optimizer.construction import ConstructionSettings

    options = flat(work, sampling, limits)
    settings = ConstructionSettings(**{name: options[name] for name in ConstructionSettings.model_fields})
    request = BuildRequest(work.suite, tuple(work.op or ()), tuple(work.runs or ()), settings, out)
    began = time.monotonic()
    try:
        bank = build_bank(request, ModelAccess.of(flat(endpoint)), daemon, note)
    except KeyboardInterrupt as error:
        note("interrupted; the same command resumes it")
        raise typer.Exit(EXIT_INTERRUPTED) from error
    note(f"{out}: {len(bank)} experiences, {len(bank.motifs)} motifs, {time.monotonic() - began:.0f} s")


@app.command("show")
def bank_show(
    bank: BankFile = None,
    motif: Annotated[str | None, typer.Option(help="Only this motif.")] = None,
    operator: Annotated[str | None, typer.Option("--operator", "--op", help="Only this operator.")] = None,
    as_json: Json = False,
) -> None:
    """List the experiences of a bank, and how often each motif occurs."""
    from collections import Counter

    from agents.ascend_optimizer.bank import bank_at, one_line

    shown = bank_at(bank).select(motif=motif, operator=operator)
    if as_json:
        experiences = [each.model_dump(mode="json") for each in shown]
        motifs = dict(sorted(Counter(each.motif for each in shown).items()))
        typer.echo(to_json({"experiences": experiences, "motifs": motifs}))
        return
    terminal = console()
    for experience in shown:
        terminal.print(one_line(experience), soft_wrap=True)
    counts = Counter(experience.motif for experience in shown)
    by_motif = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    terminal.print(f"{len(shown)} experiences; {len(counts)} motifs: {by_motif or 'none'}", soft_wrap=True)


@app.command("query")
def bank_query(
    text: Annotated[str, typer.Argument(help="A bottleneck, in words.")],
    bank: BankFile = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of results.")] = 3,
    embedder: Annotated[
        str, typer.Option(help="'lexical', 'minilm', or an embedding model at the endpoint.")
    ] = "lexical",
    key: Annotated[
        str, typer.Option(help="Retrieval key: 'bottleneck' or 'bottleneck+applicability'.")
    ] = "bottleneck+applicability",
    base_url: Annotated[str | None, typer.Option(help="Endpoint; default $OPENAI_BASE_URL.")] = None,
) -> None:
    """Retrieve the experiences whose bottleneck is most similar to TEXT, one per motif."""
    from agents.ascend_optimizer.bank import bank_at, one_line
    from agents.ascend_optimizer.embedders import remembering, retriever_named, vectors_for

    endpoint = remembering(vectors_for(bank), base_url)
    retriever = retriever_named(embedder, bank_at(bank), key, endpoint=endpoint)
    for found in retriever.top(text, k):
        console().print(f"{found.score:.3f}  {one_line(found.experience)}", soft_wrap=True)
        console().print(f"       {found.experience.bottleneck}", soft_wrap=True)


@app.command("merge")
def bank_merge(
    banks: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Banks to merge.")],
    out: Annotated[Path, typer.Option(metavar="FILE", dir_okay=False, help="The merged bank.")],
) -> None:
    """Merge banks; of two experiences with the same change, the one with stronger evidence is kept."""
    from agents.ascend_optimizer.bank import ExperienceBank

    merged = ExperienceBank()
    for path in banks:
        merged = merged.merge(ExperienceBank.load(path))
    merged.save(out)
    note(f"{out}: {len(merged)} experiences, {len(merged.motifs)} motifs")


@app.command("export")
def bank_export(
    bank: BankFile = None,
    form: Annotated[BankFormat, typer.Option("--format", help="Markdown or JSON.")] = BankFormat.MARKDOWN,
) -> None:
    """Print a bank as a Markdown page or one JSON list."""
    from agents.ascend_optimizer.bank import bank_at, to_markdown
    from agents.ascend_optimizer.bank import to_json as bank_as_json

    exported = bank_at(bank)
    typer.echo(to_markdown(exported) if form is BankFormat.MARKDOWN else bank_as_json(exported))
