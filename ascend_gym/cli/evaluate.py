"""``ascend-gym evaluate``: evaluate a candidate and its operator's own sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from ascend_gym.cli.options import (
    EXIT_BY_BLAME,
    Chip,
    ConnectTimeout,
    ConventionOption,
    Daemon,
    Json,
    KernelFile,
    OpDir,
    Operator,
    TilingFile,
    case_of,
    console,
    opened_evaluator,
    source_text,
)
from ascend_gym.core.option_groups import grouped
from ascend_gym.core.records import Convention, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.core.status import Status, rule_of
from ascend_gym.env.evaluation import evaluate as evaluate_request
from ascend_gym.env.evaluation import evaluate_all
from ascend_gym.report.summary import evaluation_summary, to_json
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import data_request_for, request_for


@dataclass(frozen=True)
class _Subject:
    """What is evaluated."""

    op: Operator
    op_dir: OpDir = None
    tiling_file: TilingFile = None
    kernel_file: KernelFile = None
    case: Annotated[str | None, typer.Option(metavar="ID", help="Only this case.")] = None
    chip: Chip = "910B2"
    convention: ConventionOption = Convention.L2_COLD


@grouped
def evaluate(
    subject: _Subject,
    daemon: Daemon = None,
    connect_timeout: ConnectTimeout = None,
    as_data: Annotated[
        bool, typer.Option("--as-data", help="Send inputs and expected outputs, for a daemon without OP.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Show every case, and exit with 1 unless all are correct.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Evaluate an operator with another tiling or kernel source, and its own sources for comparison."""
    from ascend_gym.report.console import print_evaluation

    chip, case = subject.chip, subject.case
    spec = load_operator(subject.op, op_dir=subject.op_dir)
    candidate = spec.baseline.rewritten(
        tiling=source_text(subject.tiling_file), kernel=source_text(subject.kernel_file)
    )
    case_ids: tuple[str, ...] = () if case is None else (case_of(spec, case).case_id,)
    protocol = MeasureProtocol(chip=chip, convention=subject.convention)
    asked = data_request_for if as_data else request_for
    if check:
        case_ids = case_ids or tuple(each.case_id for each in spec.cases)
        requests = [asked(spec, candidate, protocol, (each,)) for each in case_ids]
        with opened_evaluator(daemon, chip) as evaluator:
            results = evaluate_all(evaluator, requests)
        raise typer.Exit(_shown_check(spec, case_ids, results, as_json=as_json))
    with opened_evaluator(daemon, chip) as evaluator:
        result = evaluate_request(evaluator, asked(spec, candidate, protocol, case_ids))
        same = candidate == spec.baseline
        own = asked(spec, spec.baseline, protocol, case_ids)
        baseline = result if same else evaluate_request(evaluator, own)
    summary = evaluation_summary(spec, result, baseline)
    if as_json:
        typer.echo(to_json(summary))
    else:
        print_evaluation(console(), summary, result.all_diagnostics, chip)
    raise typer.Exit(EXIT_BY_BLAME.get(rule_of(result.status).blame, 0))


def _shown_check(
    spec: OpSpec, case_ids: Sequence[str], results: Sequence[EvalResult], *, as_json: bool
) -> int:
    """Print the results of cases evaluated one by one, and return the exit status."""
    from ascend_gym.report.console import print_check

    right = all(result.status is Status.OK for result in results)
    if as_json:
        summaries = [evaluation_summary(spec, result, result) for result in results]
        typer.echo(to_json({"operator": spec.op_id, "passed": right, "evaluations": summaries}))
    else:
        terminal = console()
        for name, result in zip(case_ids, results, strict=True):
            figures = "" if result.latency_us is None else f": {result.latency_us:.2f} us"
            complaints = [str(each) for each in result.all_diagnostics]
            print_check(
                terminal, f"{spec.op_id}, case {name}{figures}", [] if result.latency_us else complaints
            )
    blamed = [EXIT_BY_BLAME.get(rule_of(result.status).blame, 0) for result in results]
    return max(blamed) or (0 if right else 1)
