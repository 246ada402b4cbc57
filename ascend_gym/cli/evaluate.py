"""``ascend-gym evaluate``: one evaluation of an operator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ascend_gym.cli.options import (
    EXIT_BY_BLAME,
    Chip,
    Daemon,
    Json,
    OpDir,
    Operator,
    case_of,
    console,
    opened_evaluator,
    source_text,
)
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.core.status import rule_of
from ascend_gym.env.evaluation import evaluate as evaluate_request
from ascend_gym.report.summary import evaluation_summary, to_json
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.requests import data_request_for, request_for

_SOURCE_FILE = typer.Option(exists=True, dir_okay=False, readable=True)


def evaluate(
    op: Operator,
    op_dir: OpDir = None,
    tiling_file: Annotated[Path | None, _SOURCE_FILE] = None,
    kernel_file: Annotated[Path | None, _SOURCE_FILE] = None,
    case: Annotated[str | None, typer.Option(metavar="ID", help="Only this case.")] = None,
    chip: Chip = "910B2",
    daemon: Daemon = None,
    as_data: Annotated[
        bool, typer.Option("--as-data", help="Send inputs and expected outputs: for a daemon without OP.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Evaluate an operator with another tiling or kernel source beside its own."""
    from ascend_gym.report.console import print_evaluation

    spec = load_operator(op, op_dir=op_dir)
    candidate = spec.baseline.rewritten(tiling=source_text(tiling_file), kernel=source_text(kernel_file))
    case_ids = () if case is None else (case_of(spec, case).case_id,)
    protocol = MeasureProtocol(chip=chip)
    asked = data_request_for if as_data else request_for
    with opened_evaluator(daemon, chip) as evaluator:
        result = evaluate_request(evaluator, asked(spec, candidate, protocol, case_ids))
        same = candidate == spec.baseline
        own = asked(spec, spec.baseline, protocol, case_ids)
        baseline = result if same else evaluate_request(evaluator, own)
    summary = evaluation_summary(spec, result, baseline)
    if as_json:
        typer.echo(to_json(summary))
    else:
        print_evaluation(console(), summary, result.all_diagnostics)
    raise typer.Exit(EXIT_BY_BLAME.get(rule_of(result.status).blame, 0))
