"""``ascend-gym suite``: list, show, check, create and import operators."""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    operators_beginning,
)
from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import MisuseError, OperatorFormatError
from ascend_gym.core.option_groups import grouped
from ascend_gym.core.protocols import Evaluation, Evaluator
from ascend_gym.core.records import Case, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.env.evaluation import evaluate_all
from ascend_gym.suite.audit import audit_case
from ascend_gym.suite.loader import left_out, list_operators, load_operator
from ascend_gym.suite.manifest import MANIFEST_NAME
from ascend_gym.suite.requests import request_for
from ascend_gym.suite.scaffold import DEFAULT_MODEL, begin_operator
from ascend_gym.suite.specification import has_no_sources

if TYPE_CHECKING:
    from npu_daemon.coverage import Coverage

_TILING_KEY = re.compile(r"\bTILING_KEY_IS\s*\(\s*(\d+)[uUlL]*\s*\)")

_Key = tuple[str, str, bool]  # operator, case, whether it is measured once more

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


@dataclass(frozen=True)
class _Choice:
    """One operator, or those of a suite."""

    op: OptionalOperator = None
    op_dir: OpDir = None
    every: Every = False
    suite: Suite = "core"
    level: Level = None
    category: Category = None

    def specs(self) -> list[OpSpec]:
        """Load them; what a suite leaves out is told.

        Raises:
            MisuseError: none is chosen, or an operator and others.
        """
        if (self.op is None) != (self.every or bool(self.level or self.category)):
            raise MisuseError("name one operator, or say --all, --level or --category")
        if self.op is not None:
            return [load_operator(self.op, op_dir=self.op_dir)]
        _tell_left_out(self.suite)
        return list_operators(self.suite, levels=self.level or (), categories=self.category or ())


@dataclass(frozen=True)
class Check:
    """One check of one operator.

    Attributes:
        spec: the operator.
        name: what was checked, with its figures.
        complaints: why it failed; empty if it passed.
        warnings: what an evaluation says of sources that are correct, such as a read of up to 32 bytes past
            the end of a tensor.
    """

    spec: OpSpec
    name: str
    complaints: Sequence[str] = ()
    warnings: Sequence[str] = ()


def mean_floor_us(spec: OpSpec, chip: str) -> float:
    """Return the geometric mean of the cases' floors (lower bounds of the latency), in microseconds."""
    from npu_daemon.floor import floor_us
    from npu_daemon.simulator.chips import load_chip

    known = load_chip(chip)
    return math.exp(sum(math.log(floor_us(spec, case, known)) for case in spec.cases) / len(spec.cases))


def baselines_us(
    evaluator: Evaluator, specs: Sequence[OpSpec], protocol: MeasureProtocol
) -> dict[str, float | None]:
    """Return the latency of each operator's own sources in microseconds; ``None`` if they fail.

    Raises:
        InfrastructureError: the evaluator cannot be reached.
    """
    results = evaluate_all(evaluator, [request_for(spec, spec.baseline, protocol) for spec in specs])
    return {spec.op_id: result.latency_us for spec, result in zip(specs, results, strict=True)}


def coverages(specs: Sequence[OpSpec], protocol: MeasureProtocol) -> Iterator[tuple[OpSpec, Coverage]]:
    """Yield for each operator with sources which of their lines its cases reach, on the simulator.

    Raises:
        InfrastructureError: the simulator cannot be built.
    """
    from npu_daemon.coverage import coverage_of
    from npu_daemon.simulator.toolchain import obtain_toolchain

    toolchain = None
    for spec in specs:
        if not has_no_sources(Path(spec.folder) / MANIFEST_NAME):
            toolchain = toolchain or obtain_toolchain(cache_root(), note)
            yield spec, coverage_of(spec, cache_root(), toolchain, protocol)


def mentioned_keys(spec: OpSpec) -> set[int]:
    """Return the numeric tiling keys that an operator's kernel tests for."""
    return {int(key) for file in spec.baseline.kernel.files for key in _TILING_KEY.findall(file.text)}


def validations(evaluator: Evaluator, specs: Sequence[OpSpec], protocol: MeasureProtocol) -> Iterator[Check]:
    """Yield each check of each operator.

    Each case is audited, and the operator's own sources must be correct on it and not below its floor. The
    smallest case is measured twice and must give the same latency. Tiling keys that no case reaches and
    warnings are reported, but are no complaint. Cases are audited in this process while the evaluator works.

    Raises:
        InfrastructureError: the evaluator cannot be reached.
    """
    pending: dict[_Key, Evaluation] = {}
    for spec in specs:
        for case in spec.cases:
            pending[spec.op_id, case.case_id, False] = _submitted(evaluator, spec, case, protocol)
        smallest = _smallest(spec)
        again = _submitted(evaluator, spec, smallest, protocol, use_cache=False)
        pending[spec.op_id, smallest.case_id, True] = again
    for spec in specs:
        for case in (*spec.cases, *spec.hidden_cases):
            complaints = audit_case(spec, case, protocol.input_seed)
            yield Check(spec, f"audit of case {case.case_id}", complaints)
            evaluator.poll(0.0)
    for spec in specs:
        for case in spec.cases:
            result = pending[spec.op_id, case.case_id, False].result()
            yield _baseline_check(spec, case, result)
        smallest = _smallest(spec)
        first, second = (
            pending[spec.op_id, smallest.case_id, again].result().latency_us for again in (False, True)
        )
        if mentioned_keys(spec):
            yield Check(spec, _keys_reached(spec, pending))
        changed = [f"measured twice: {first} us and then {second} us"] if first != second else []
        yield Check(spec, f"repeated case {smallest.case_id}", changed)


def _keys_reached(spec: OpSpec, pending: Mapping[_Key, Evaluation]) -> str:
    results = [pending[spec.op_id, case.case_id, False].result() for case in spec.cases]
    reached = {each.launch.tiling_key for result in results for each in result.cases if each.launch}
    mentioned = mentioned_keys(spec)
    missed = ", ".join(map(str, sorted(mentioned - reached)))
    reached_keys = f"tiling keys: {len(mentioned & reached)} of {len(mentioned)} reached"
    return f"{reached_keys}; no case reaches {missed}" if missed else reached_keys


def _submitted(
    evaluator: Evaluator, spec: OpSpec, case: Case, protocol: MeasureProtocol, *, use_cache: bool = True
) -> Evaluation:
    request = request_for(spec, spec.baseline, protocol, (case.case_id,))
    return evaluator.submit(request.model_copy(update={"use_cache": use_cache}))


def _smallest(spec: OpSpec) -> Case:
    return min(spec.cases, key=lambda case: case.traffic_bytes)


def _baseline_check(spec: OpSpec, case: Case, result: EvalResult) -> Check:
    name = f"baseline on case {case.case_id}"
    lines = [str(each) for each in result.all_diagnostics]
    if result.latency_us is None:
        return Check(spec, name, lines or [f"status {result.status}"])
    name += f": {result.latency_us:.2f} us"
    complaints = []
    if result.floor_us is not None:
        name += f", floor {result.floor_us:.2f} us"
        if result.latency_us < result.floor_us:
            complaints = [f"{result.latency_us:.2f} us are less than the floor of {result.floor_us:.2f} us"]
    return Check(spec, name, complaints, lines if spec.has_sources else ())  # framework calls have a note


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
        Path | None, typer.Option(metavar="DIR", exists=True, file_okay=False, help="Checkout of cann-ops.")
    ] = None,
    cann_library: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Checkout of ops-math, ops-nn, ops-transformer or one like them.",
        ),
    ] = None,
    op: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this one; repeatable.")] = None,
) -> None:
    """Register the operators of a checkout by name; the checkout stays where it is.

    Example programs and golden.py run once, confined; the manifests made from them are kept in the cache.
    """
    if (cann_ops is None) == (cann_library is None):
        raise MisuseError("give one checkout: --cann-ops DIR or --cann-library DIR")
    if cann_library is not None:
        _import_library(cann_library, op or [])
        return
    assert cann_ops is not None
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


def _import_library(checkout: Path, names: Sequence[str]) -> None:
    """Import a library by domain; say what of it is ready, and of the rest why not."""
    from ascend_gym.suite.imported import import_library

    def told(name: str, needs: str) -> None:
        typer.echo(f"{name}: {needs or 'ready'}")

    suite, index = import_library(checkout, names, told, os.cpu_count() or 1)
    note(
        f"{len(index.ready())} of {len(index.operators)} operators of {suite} are ready: "
        f"{shlex.join(['ascend-gym', 'suite', 'list', '--suite', suite])}"
    )


@app.command("new")
def suite_new(
    op: Annotated[str, typer.Argument(metavar="OP", help="Name of the new operator, such as scale_rows.")],
    like: Annotated[str, typer.Option(metavar="OP", help="Operator to copy.")] = DEFAULT_MODEL,
    parent: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Parent of the new folder.")] = Path(),
) -> None:
    """Create an operator of your own as a working copy of another one."""
    folder = begin_operator(op, parent, load_operator(like))
    typer.echo(f"{folder}: change its sources, reference.py and op.toml, then")
    typer.echo(shlex.join(["ascend-gym", "suite", "validate", op, "--op-dir", str(folder)]))


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
@grouped
def suite_audit(
    choice: _Choice,
    seed: Annotated[int, typer.Option(help="Seed of the inputs.")] = 0,
    coverage: Annotated[
        bool, typer.Option(help="Run the baselines, too, and name the source lines that no case reaches.")
    ] = True,
    chip: Chip = "910B2",
    as_json: Json = False,
) -> None:
    """Check that each case tells correct outputs from zeros, constants, copies and incomplete ones."""
    from ascend_gym.report.console import print_check
    from ascend_gym.report.summary import to_json
    from ascend_gym.suite.audit import audit_case
    from ascend_gym.suite.mutants import audit_domain

    terminal = console()
    audited, covered, domains = [], [], []
    specs = choice.specs()
    for spec in specs:
        for case in (*spec.cases, *spec.hidden_cases):
            complaints = audit_case(spec, case, seed)
            audited.append({"operator": spec.op_id, "case_id": case.case_id, "complaints": list(complaints)})
            if not as_json:
                print_check(terminal, f"{spec.op_id}, case {case.case_id}", complaints)
        domain = audit_domain(spec, seed)
        told = {"complaints": list(domain.complaints), "notes": list(domain.notes)}
        domains.append({"operator": spec.op_id, **told})
        if not as_json:
            print_check(terminal, f"{spec.op_id}, domain ({'; '.join(domain.notes)})", domain.complaints)
    for spec, reach in coverages(specs, MeasureProtocol(chip=chip, input_seed=seed)) if coverage else ():
        covered.append({"operator": spec.op_id, **reach.document()})
        if not as_json:
            for line in reach.lines():
                typer.echo(f"{spec.op_id}, {line}")
    failed = [f"{each['operator']} {each['case_id']}" for each in audited if each["complaints"]]
    failed += [f"{each['operator']} domain" for each in domains if each["complaints"]]
    message = f"verdicts on {', '.join(failed)} cannot be relied on"
    if as_json:
        typer.echo(to_json({"passed": not failed, "cases": audited, "domains": domains, "coverage": covered}))
        if failed:
            note(f"ascend-gym: {message}")
            raise typer.Exit(EXIT_MISUSE)
    elif failed:
        raise OperatorFormatError(message)


@app.command("validate")
@grouped
def suite_validate(
    choice: _Choice,
    daemon: Daemon = None,
    chip: Chip = "910B2",
) -> None:
    """Check that an operator's verdicts are reliable and that its own sources evaluate."""
    from ascend_gym.report.console import print_check

    terminal = console()
    specs = choice.specs()
    failed = set()
    with opened_evaluator(daemon, chip) as evaluator:
        for check in validations(evaluator, specs, MeasureProtocol(chip=chip)):
            print_check(terminal, f"{check.spec.op_id}, {check.name}", check.complaints, check.warnings)
            failed |= {check.spec.op_id} if check.complaints else set()
    if failed:
        raise OperatorFormatError(f"{', '.join(sorted(failed))} did not pass every check")


def _tell_left_out(suite: str) -> None:
    """Name the operators of a suite that cannot be loaded, those of the same reason in one line."""
    names: dict[str, list[str]] = {}
    for name, reason in left_out(suite).items():
        names.setdefault(reason, []).append(name)
    for reason, those in names.items():
        note(f"{suite}/{', '.join(those)}: left out: {reason}")
