"""``ascend-gym suite``: look at operators, check them, import them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ascend_gym.cli.completion import operators_beginning
from ascend_gym.cli.options import (
    EXIT_MISUSE,
    Chip,
    Daemon,
    Json,
    OpDir,
    Operator,
    Suite,
    console,
    evaluated,
    note,
    opened_evaluator,
)
from ascend_gym.core.errors import MisuseError, OperatorFormatError
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.suite.loader import list_operators, load_operator

app = typer.Typer(no_args_is_help=True, help="Look at operators and check them.")


@app.command("list")
def suite_list(suite: Suite = "core", as_json: Json = False) -> None:
    """List the operators of a suite."""
    from ascend_gym.report.console import print_operators
    from ascend_gym.report.summary import operator_row, to_json

    specs = list_operators(suite)
    if as_json:
        typer.echo(to_json({"suite": suite, "operators": [operator_row(spec) for spec in specs]}))
    else:
        print_operators(console(), specs)


@app.command("import")
def suite_import(
    cann_ops: Annotated[Path, typer.Option(metavar="DIR", exists=True, file_okay=False)],
    op: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this one; repeatable.")] = None,
) -> None:
    """Make operators of a cann-ops checkout known by name; the checkout stays where it is."""
    from ascend_gym.suite.imported import IMPORTED_SUITE, register, select_operators
    from ascend_gym.suite.loader import what_it_needs

    needs = {}
    for name, folder in select_operators(cann_ops.resolve(), op or []).items():
        needs[name] = what_it_needs(name, folder)
        typer.echo(f"{IMPORTED_SUITE}/{name}: {f'needs {needs[name]}' if needs[name] else 'ready'}")
    index = register(cann_ops, needs)
    note(f"{len(index.ready())} of {len(index.operators)} imported operators are ready")


@app.command("show")
def suite_show(op: Operator, op_dir: OpDir = None, as_json: Json = False) -> None:
    """Show an operator, its cases and its files."""
    from ascend_gym.report.console import print_operator
    from ascend_gym.report.summary import operator_document, to_json

    spec = load_operator(op, op_dir=op_dir)
    if as_json:
        typer.echo(to_json(operator_document(spec)))
    else:
        print_operator(console(), spec)


@app.command("audit")
def suite_audit(
    op: Annotated[
        str | None,
        typer.Argument(
            metavar="OP", help="core/gelu, gelu or a name of yours.", autocompletion=operators_beginning
        ),
    ] = None,
    op_dir: OpDir = None,
    every: Annotated[bool, typer.Option("--all", help="Every operator of a suite.")] = False,
    suite: Suite = "core",
    seed: Annotated[int, typer.Option(help="Of the inputs.")] = 0,
    as_json: Json = False,
) -> None:
    """Show whether each case tells right outputs from zeros, constants, copies and half-done ones."""
    from ascend_gym.report.console import print_check
    from ascend_gym.report.summary import to_json
    from ascend_gym.suite.audit import audit_case

    if (op is None) != every:
        raise MisuseError("name one operator, or say --all")
    terminal = console()
    audited = []
    for spec in list_operators(suite) if op is None else [load_operator(op, op_dir=op_dir)]:
        for case in (*spec.cases, *spec.hidden_cases):
            complaints = audit_case(spec, case, seed)
            audited.append({"operator": spec.op_id, "case_id": case.case_id, "complaints": list(complaints)})
            if not as_json:
                print_check(terminal, f"{spec.op_id}, case {case.case_id}", complaints)
    failed = [f"{each['operator']} {each['case_id']}" for each in audited if each["complaints"]]
    message = f"verdicts on {', '.join(failed)} cannot be relied on"
    if as_json:
        typer.echo(to_json({"passed": not failed, "cases": audited}))
        if failed:
            note(f"ascend-gym: {message}")
            raise typer.Exit(EXIT_MISUSE)
    elif failed:
        raise OperatorFormatError(message)


@app.command("validate")
def suite_validate(op: Operator, op_dir: OpDir = None, daemon: Daemon = None, chip: Chip = "910B2") -> None:
    """Check that verdicts on an operator can be relied on and that its own sources evaluate."""
    from ascend_gym.report.console import print_check
    from ascend_gym.suite.audit import audit_case

    terminal = console()
    spec = load_operator(op, op_dir=op_dir)
    protocol = MeasureProtocol(chip=chip)
    checks = {
        f"audit of case {case.case_id}": audit_case(spec, case, protocol.input_seed) for case in spec.cases
    }
    with opened_evaluator(daemon, chip) as evaluator:
        for case in spec.cases:
            result = evaluated(evaluator, spec, spec.baseline, protocol, (case.case_id,))
            told = spec.has_sources or result.latency_us is None  # framework calls are priced with a note
            complaints = [str(each) for each in result.all_diagnostics] if told else []
            checks[f"baseline on case {case.case_id}"] = complaints
    for name, complaints in checks.items():
        print_check(terminal, name, complaints)
    if any(checks.values()):
        raise OperatorFormatError(f"{spec.op_id} did not pass every check")
