"""Converts a sweep's plan into runs with settings, and estimates their cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ascend_gym.cli.methods import RunSettings
from ascend_gym.cli.runs import settings_text
from ascend_gym.cli.variants import variant_name, variant_settings
from ascend_gym.core.append_log import write_whole
from ascend_gym.core.errors import MisuseError
from ascend_gym.search.llm.metering import Price
from ascend_gym.sweep.jobs import SweepJob
from ascend_gym.sweep.plan import Limits, SweepPlan
from ascend_gym.sweep.store import ResultsStore

PLAN_NAME = "sweep.json"
_SECONDS_PER_HOUR = 3600.0

_MEASURED = """
SELECT variant, COUNT(*), SUM(CASE WHEN cached THEN 0 ELSE total_s - queue_s END),
    SUM(prompt_tokens), SUM(completion_tokens), SUM(usd)
FROM evaluations JOIN runs USING (run_id) WHERE idx > 0 GROUP BY variant
"""


def jobs_of(plan: SweepPlan) -> list[SweepJob]:
    """Return the runs of a plan.

    Raises:
        MisuseError: an operator or method is unknown, or a variant has a budget of its own.
    """
    jobs = []
    for method, own in plan.runs():
        settings = variant_settings(method, **own)
        if any(getattr(settings, name) != own[name] for name in Limits.model_fields):
            limits = ", ".join(Limits.model_fields)
            raise MisuseError(f"{method!r} would have a budget of its own: set {limits} for all methods")
        operator, seed, budget, chip = (own[name] for name in ("operator", "seed", "budget", "chip"))
        names = (method, operator, f"{chip}-budget{budget}-seed{seed}")
        folder = "/".join(name.replace("/", "_") for name in names)
        variant, text = variant_name(settings), settings_text(settings)
        jobs.append(SweepJob(folder, variant, operator, seed, budget, chip, text))
    return jobs


def unused_settings(plan: SweepPlan) -> list[str]:
    """Return a line for each variant that sets what its method does not use."""
    settings = [variant_settings(method, operator="", **plan.common_settings()) for method in plan.methods]
    return [unused for each in settings if (unused := each.unused())]


def as_written_now(text: bytes) -> bytes:
    """Return the settings of a run as this release writes them, with the defaults of later ones."""
    try:
        return settings_text(RunSettings.model_validate_json(text))
    except ValueError:  # whoever compares it sees that it is something else
        return text


def kept_plan(out: Path, plan: SweepPlan | None, *, resume: bool) -> SweepPlan:
    """Return the plan of the sweep in ``out``; for a new sweep, write it there first.

    Raises:
        MisuseError: there is a sweep that is not to be resumed, or has another plan; or there is no plan.
    """
    path = out / PLAN_NAME
    known = SweepPlan.model_validate_json(path.read_bytes()) if path.exists() else None
    if known is None:
        if plan is None:
            raise MisuseError(f"{out} holds no sweep to resume; give a plan, or --method and --op")
        _begin(out, plan)
        return plan
    if not resume:
        raise MisuseError(f"{out} holds a sweep already: resume it with --resume, or name another --out")
    if plan not in (None, known):
        raise MisuseError(
            f"{out} holds a sweep with another plan ({_differences(known, plan)}): give what it began with, "
            "or nothing but --resume, or name another folder with --out"
        )
    return known


def _differences(known: SweepPlan, plan: SweepPlan | None) -> str:
    """Return what another plan has otherwise, such as ``seeds: it has [0], given were [0, 1]``."""
    before, now = known.model_dump(mode="json"), plan.model_dump(mode="json") if plan else {}
    for each in (before, now):
        each |= each.pop("limits", {})
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return "; ".join(f"{name}: it has {before.get(name)}, given were {now.get(name)}" for name in names)


def _begin(out: Path, plan: SweepPlan) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / PLAN_NAME, f"{plan.model_dump_json(indent=2)}\n".encode())
    except OSError as error:
        raise MisuseError(f"{out} cannot be written: {error}; name another folder with --out") from error


def equal_budgets(plan: SweepPlan) -> str:
    """Describe the budget of every run in one line."""
    rest = plan.limits.model_dump(mode="json", exclude={"duplicates", "price"}, exclude_none=True)
    also = "".join(f", at most {value:g} {name.replace('_', ' ')}" for name, value in rest.items())
    budgets = " or ".join(map(str, plan.budgets))
    return (
        f"every run of every method: {budgets} evaluations{also}; duplicates {plan.limits.duplicates.value}"
    )


def estimate(
    jobs: Sequence[SweepJob], store: ResultsStore | None, at_a_time: int, price: Price | None = None
) -> dict[str, Any]:
    """Estimate the cost of runs from earlier evaluations in a store.

    Args:
        jobs: runs.
        store: earlier results; for methods without any, hours, tokens and money are unknown (``None``).
        at_a_time: number of simultaneous evaluations.
        price: of the model; ``None`` for what the earlier runs were charged.

    Returns:
        Runs, evaluations (and baselines, which are not charged), hours, tokens, US dollars, and the basis of
        the last three. Tokens from a provider's cache count as others here, so that money is rather too much.
    """
    measured = store.query(_MEASURED) if store is not None else iter(())
    by_method = {variant: (count, totals) for variant, count, *totals in measured}
    evaluations = sum(job.budget for job in jobs)
    known = all(job.variant in by_method for job in jobs)
    baselines = len({(job.operator, job.chip) for job in jobs})
    expected: list[float | None] = [None] * 4
    if known:
        expected = [
            sum(job.budget * by_method[job.variant][1][at] / by_method[job.variant][0] for job in jobs)
            for at in range(4)
        ]
    seconds, prompt_tokens, completion_tokens, usd = expected
    tokens = None if prompt_tokens is None else prompt_tokens + (completion_tokens or 0.0)
    if price is not None and prompt_tokens is not None:
        usd = price.cost(round(prompt_tokens), round(completion_tokens or 0.0)).usd
    return {
        "runs": len(jobs),
        "evaluations": evaluations,
        "baselines": baselines,
        "hours": None if seconds is None else seconds / at_a_time / _SECONDS_PER_HOUR,
        "tokens": None if tokens is None else round(tokens),
        "usd": None if usd is None else round(usd, 4),
        "evaluations_at_a_time": at_a_time,
        "measured_evaluations": sum(count for count, _ in by_method.values()),
    }
