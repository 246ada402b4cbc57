"""Tables of the report: ends of evaluations, costs, pipe times, rooflines, provenance, published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ascend_gym.core.status import Status
from ascend_gym.core.toml_file import read_toml
from ascend_gym.report.comparison import Table
from ascend_gym.report.page.results import Results
from ascend_gym.sweep.run_records import RunRecord

_Case = dict[str, Any]  # of a stored result
_PUBLISHED = Path(__file__).with_name("published.toml")
_PIPES = (
    ("aiv_vec_time", "vector"),
    ("aiv_scalar_time", "scalar"),
    ("aiv_mte2_time", "MTE2"),
    ("aiv_mte3_time", "MTE3"),
    ("aic_mac_time", "cube"),
    ("aic_scalar_time", "cube scalar"),
    ("aic_mte1_time", "MTE1"),
    ("aic_mte2_time", "cube MTE2"),
    ("aic_fixpipe_time", "fixpipe"),
)


def statuses_table(results: Results) -> Table:
    """Return the share of evaluations by status for each method."""
    counts = results.statuses()
    seen = [status.value for status in Status if any(count[status.value] for count in counts.values())]
    rows = []
    for name, count in counts.items():
        total = sum(count.values())
        shares = (f"{100 * count[status] / total:.1f}" if total else "-" for status in seen)
        rows.append((name, str(total), *shares))
    return Table("How evaluations ended, %", ("method", "evaluations", *seen), tuple(rows))


def costs_table(results: Results) -> Table:
    """Return the costs of each method's runs."""
    rows = tuple(
        (
            *(name, str(cost.runs), str(cost.evaluations), str(cost.known)),
            *(f"{cost.device_seconds:.1f}", f"{cost.evaluation_seconds:.1f}", str(cost.model_calls)),
            *(str(cost.prompt_tokens), str(cost.completion_tokens), f"{cost.usd:.2f}"),
        )
        for name, cost in results.costs().items()
    )
    columns = ("method", "runs", "evaluations", "known", "device s", "evaluation s", "model calls")
    return Table("Cost", (*columns, "tokens read", "tokens written", "USD"), rows)


def profile_table(results: Results, run: RunRecord) -> Table | None:
    """Return the pipe times of a run's slowest case before and after; ``None`` if not measured."""
    cases = _before_and_after(results, run)
    if not cases:
        return None
    name, before, after = max(cases, key=lambda each: (_duration_us(each[1]), each[0]))
    old, new = before["profile"], after["profile"]
    keys = [("task_duration_us", "task duration"), *_PIPES]
    rows = [(label, old.get(key, 0.0), new.get(key, 0.0)) for key, label in keys]
    texts = [
        (label, f"{was:.2f}", f"{is_now:.2f}", f"{was / is_now:.2f}x" if is_now else "-")
        for label, was, is_now in rows
        if was > 0 or is_now > 0
    ]
    dims = f"{old['block_dim']} and {new['block_dim']} blocks"
    return Table(f"Case {name}, us ({dims})", ("pipe", "before", "after", "ratio"), tuple(texts))


def roofline_table(results: Results, run: RunRecord) -> Table | None:
    """Return the share of its floor that each case reaches before and after a run; ``None`` if unmeasured."""
    rows = tuple(
        (name, _microseconds(before.get("floor_us")), *_roofline(before), *_roofline(after))
        for name, before, after in _before_and_after(results, run)
    )
    half = ("of roofline %", "busiest pipe")
    columns = ("case", "floor us", "before us", *half, "after us", *half)
    return Table("Roofline", columns, rows) if rows else None


def provenance_table(results: Results) -> Table:
    """Return the provenance of the runs, one row for each combination."""
    query = "SELECT run_id, backend, sandbox, toolchain_digest, hosts FROM provenance"
    known = {row[0]: row[1:] for row in results.store.query(query)}
    counts: dict[tuple[str, ...], int] = {}
    for run in results.runs:
        backend, sandbox, toolchain, hosts = known.get(run.run_id, ("-", "-", None, 0))
        parts = (run.chip, str(backend), str(sandbox), (toolchain or "-")[:12], run.protocol_digest[:12])
        key = (*parts, run.model, str(hosts))
        counts[key] = counts.get(key, 0) + 1
    columns = ("chip", "backend", "sandbox", "toolchain", "protocol", "model", "hosts a run", "runs")
    return Table("Made with", columns, tuple((*key, str(count)) for key, count in counts.items()))


def published_tables() -> list[tuple[Table, str]]:
    """Return the tables of the paper's two versions with their sources."""
    return [
        (Table(each["title"], tuple(each["columns"]), tuple(map(tuple, each["rows"]))), each["source"])
        for each in read_toml(_PUBLISHED)["table"]
    ]


def _before_and_after(results: Results, run: RunRecord) -> list[tuple[str, _Case, _Case]]:
    """Return the measured cases of the baseline and of the best candidate."""
    incumbents = results.store.incumbents(run.run_id)
    if not incumbents:
        return []
    before, after = (
        {case["case_id"]: case for case in results.store.result(each)["cases"] if case["profile"]}
        for each in (incumbents[0], incumbents[-1])
    )
    return [(name, case, after[name]) for name, case in before.items()]


def _roofline(case: _Case) -> tuple[str, str, str]:
    """Return duration, the floor's share of it, and the busiest pipe."""
    profile, floor_us, duration_us = case["profile"], case.get("floor_us"), _duration_us(case)
    reached = f"{100 * floor_us / duration_us:.0f}" if floor_us else "-"
    shares = {label: profile.get(key.replace("_time", "_ratio"), 0.0) for key, label in _PIPES}
    busiest = max(shares, key=lambda label: shares[label])
    return f"{duration_us:.2f}", reached, f"{busiest} {100 * shares[busiest]:.0f} %"


def _duration_us(case: _Case) -> float:
    return float(case["profile"]["task_duration_us"])


def _microseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
