"""``ascend-gym suite``: list, show, check, create and import operators."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
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
    note,
    opened_evaluator,
)
from ascend_gym.core.errors import MisuseError, OperatorFormatError
from ascend_gym.core.records import MeasureProtocol, OpSpec
from ascend_gym.suite.loader import left_out, list_operators, load_operator
from ascend_gym.suite.scaffold import DEFAULT_MODEL, begin_operator

OptionalOperator = Annotated[
    str | None,
    typer.Argument(
        metavar="OP", help="core/gelu, gelu or an operator of your own.", autocompletion=operators_beginning
    ),
]
Every = Annotated[bool, typer.Option("--all", help="Every operator of a suite.")]
Level = Annotated[
    list[int] | None, typer.Option(min=1, max=3, help="Only operators of this level; repeatable.")
]
Category = Annotated[list[str] | None, typer.Option(help="Only operators of this category; repeatable.")]

app = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="List, show, check, create and import operators."
)


@app.command("list")
def suite_list(
    suite: Suite = "core",
    level: Level = None,
    category: Category = None,
    measure: Annotated[bool, typer.Option("--measure", help="Evaluate the operators' own sources.")] = False,
    daemon: Daemon = None,
    chip: Chip = "910B2",
    as_json: Json = False,
) -> None:
    """List the operators of a suite: level, category, cases, baseline latency, floor."""
    from ascend_gym.cli.suite_checks import baselines_us, mean_floor_us
    from ascend_gym.report.console import print_operators
    from ascend_gym.report.summary import operator_row, to_json

    specs = list_operators(suite, levels=level or (), categories=category or ())
    measured: dict[str, float | None] = {}
    if measure:
        with opened_evaluator(daemon, chip) as evaluator:
            measured = baselines_us(evaluator, specs, MeasureProtocol(chip=chip))
    rows = [
        operator_row(spec, baseline_us=measured.get(spec.op_id), floor_us=mean_floor_us(spec, chip))
        for spec in specs
    ]
    if as_json:
        typer.echo(to_json({"suite": suite, "chip": chip, "operators": rows, "left_out": left_out(suite)}))
    else:
        print_operators(console(), rows)
        _tell_left_out(suite)


@app.command("import")
def suite_import(
    cann_ops: Annotated[
        Path, typer.Option(metavar="DIR", exists=True, file_okay=False, help="Checkout of cann-ops.")
    ],
    op: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this one; repeatable.")] = None,
) -> None:
    """Register the operators of a cann-ops checkout by name; the checkout stays where it is.

    Example programs run once, confined; the manifests made from them are kept in the cache.
    """
    from ascend_gym.suite.imported import IMPORTED_SUITE, register, select_operators
    from ascend_gym.suite.loader import missing_requirements

    needs = {}
    chosen = select_operators(cann_ops.resolve(), op or [])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, reason in zip(chosen, pool.map(missing_requirements, chosen, chosen.values()), strict=True):
            needs[name] = reason
            typer.echo(f"{IMPORTED_SUITE}/{name}: {f'needs {reason}' if reason else 'ready'}")
    index = register(cann_ops, needs)
    note(f"{len(index.ready())} of {len(index.operators)} imported operators are ready")


@app.command("new")
def suite_new(
    op: Annotated[str, typer.Argument(metavar="OP", help="Name of the new operator, such as scale_rows.")],
    like: Annotated[str, typer.Option(metavar="OP", help="Operator to copy.")] = DEFAULT_MODEL,
    parent: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Parent of the new folder.")] = Path(),
) -> None:
    """Create an operator of your own as a working copy of another one."""
    folder = begin_operator(op, parent, load_operator(like))
    typer.echo(f"{folder}: change its sources, reference.py and op.toml, then")
    typer.echo(f"ascend-gym suite validate {op} --op-dir {folder}")


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
    op: OptionalOperator = None,
    op_dir: OpDir = None,
    every: Every = False,
    suite: Suite = "core",
    level: Level = None,
    category: Category = None,
    seed: Annotated[int, typer.Option(help="Seed of the inputs.")] = 0,
    coverage: Annotated[
        bool, typer.Option(help="Run the baselines, too, and name the source lines that no case reaches.")
    ] = True,
    chip: Chip = "910B2",
    as_json: Json = False,
) -> None:
    """Check that each case tells correct outputs from zeros, constants, copies and incomplete ones."""
    from ascend_gym.cli.suite_checks import coverages
    from ascend_gym.report.console import print_check
    from ascend_gym.report.summary import to_json
    from ascend_gym.suite.audit import audit_case

    terminal = console()
    audited, covered = [], []
    specs = _chosen(op, op_dir, every, suite, level, category)
    for spec in specs:
        for case in (*spec.cases, *spec.hidden_cases):
            complaints = audit_case(spec, case, seed)
            audited.append({"operator": spec.op_id, "case_id": case.case_id, "complaints": list(complaints)})
            if not as_json:
                print_check(terminal, f"{spec.op_id}, case {case.case_id}", complaints)
    for spec, reach in coverages(specs, MeasureProtocol(chip=chip, input_seed=seed)) if coverage else ():
        covered.append({"operator": spec.op_id, **reach.document()})
        if not as_json:
            for line in reach.lines():
                typer.echo(f"{spec.op_id}, {line}")
    failed = [f"{each['operator']} {each['case_id']}" for each in audited if each["complaints"]]
    message = f"verdicts on {', '.join(failed)} cannot be relied on"
    if as_json:
        typer.echo(to_json({"passed": not failed, "cases": audited, "coverage": covered}))
        if failed:
            note(f"ascend-gym: {message}")
            raise typer.Exit(EXIT_MISUSE)
    elif failed:
        raise OperatorFormatError(message)


@app.command("validate")
def suite_validate(
    op: OptionalOperator = None,
    op_dir: OpDir = None,
    every: Every = False,
    suite: Suite = "core",
    level: Level = None,
    category: Category = None,
    daemon: Daemon = None,
    chip: Chip = "910B2",
) -> None:
    """Check that an operator's verdicts are reliable and that its own sources evaluate."""
    from ascend_gym.cli.suite_checks import validations
    from ascend_gym.report.console import print_check

    terminal = console()
    specs = _chosen(op, op_dir, every, suite, level, category)
    failed = set()
    with opened_evaluator(daemon, chip) as evaluator:
        for check in validations(evaluator, specs, MeasureProtocol(chip=chip)):
            print_check(terminal, f"{check.spec.op_id}, {check.name}", check.complaints, check.warnings)
            failed |= {check.spec.op_id} if check.complaints else set()
    if failed:
        raise OperatorFormatError(f"{', '.join(sorted(failed))} did not pass every check")


def _chosen(
    op: str | None,
    op_dir: Path | None,
    every: bool,
    suite: str,
    level: list[int] | None,
    category: list[str] | None,
) -> list[OpSpec]:
    """Return the named operator, or those of a suite."""
    if (op is None) != (every or bool(level or category)):
        raise MisuseError("name one operator, or say --all, --level or --category")
    if op is not None:
        return [load_operator(op, op_dir=op_dir)]
    _tell_left_out(suite)
    return list_operators(suite, levels=level or (), categories=category or ())


def _tell_left_out(suite: str) -> None:
    """Name the operators of a suite that cannot be loaded, those of the same reason in one line."""
    names: dict[str, list[str]] = {}
    for name, reason in left_out(suite).items():
        names.setdefault(reason, []).append(name)
    for reason, those in names.items():
        note(f"{suite}/{', '.join(those)}: left out: {reason}")
