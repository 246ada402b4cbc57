"""The ``ascend-gym`` command: parses, composes, and maps outcomes to exit statuses.

Exit status 0: the job was done, also when the candidate is bad. 2: misuse. 3: broken infrastructure.
130: interrupted; what was found by then is saved and printed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ascend_gym.core.config import cache_root, default_daemon_address
from ascend_gym.core.errors import InfrastructureError, MisuseError, OperatorFormatError
from ascend_gym.core.protocols import Evaluator, Strategy
from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.core.status import Blame, Status, rule_of
from ascend_gym.env.evaluation import evaluate as evaluate_request
from ascend_gym.report.summary import evaluation_summary, to_json
from ascend_gym.search.driver import SearchOutcome, StopReason, run_search
from ascend_gym.suite.loader import list_operators, load_operator
from ascend_gym.suite.requests import request_for

EXIT_MISUSE = 2
EXIT_INFRASTRUCTURE = 3
EXIT_INTERRUPTED = 130
_EXIT_BY_BLAME = {Blame.CALLER: EXIT_MISUSE, Blame.INFRASTRUCTURE: EXIT_INFRASTRUCTURE}

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help="Optimise Ascend C operators.")
suite_app = typer.Typer(no_args_is_help=True, help="Look at operators and check them.")
app.add_typer(suite_app, name="suite")


class Method(str, Enum):
    """The search methods."""

    BEST_OF_N = "best-of-n"


Operator = Annotated[str, typer.Argument(metavar="OP", help="Operator, such as gelu or core/gelu.")]
OpDir = Annotated[Path | None, typer.Option(help="Folder of an operator of your own, named OP.")]
Daemon = Annotated[
    str | None,
    typer.Option(
        metavar="ADDR", help="Daemon, such as tcp://host:5710; by default a private one is started."
    ),
]
Chip = Annotated[str, typer.Option(help="Chip whose cycles are counted.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
SourceFileOption = typer.Option(exists=True, dir_okay=False, readable=True)


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        app()
    except MisuseError as error:
        _fail(error, Status.INVALID_REQUEST, EXIT_MISUSE)
    except InfrastructureError as error:
        _fail(error, Status.INFRA_ERROR, EXIT_INFRASTRUCTURE)


@suite_app.command("list")
def suite_list(suite: Annotated[str, typer.Option(help="Which suite.")] = "core") -> None:
    """List the operators of a suite."""
    from ascend_gym.report.console import print_operators

    print_operators(_console(), list_operators(suite))


@suite_app.command("import")
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
    _note(f"{len(index.ready())} of {len(index.operators)} imported operators are ready")


@suite_app.command("show")
def suite_show(op: Operator, op_dir: OpDir = None) -> None:
    """Show an operator, its cases and its files."""
    from ascend_gym.report.console import print_operator

    print_operator(_console(), load_operator(op, op_dir=op_dir))


@suite_app.command("validate")
def suite_validate(op: Operator, op_dir: OpDir = None, daemon: Daemon = None, chip: Chip = "910B2") -> None:
    """Check that verdicts on an operator can be relied on and that its own sources evaluate."""
    from ascend_gym.report.console import print_check
    from ascend_gym.suite.audit import audit_case

    console = _console()
    spec = load_operator(op, op_dir=op_dir)
    protocol = MeasureProtocol(chip=chip)
    checks = {
        f"audit of case {case.case_id}": audit_case(spec, case, protocol.input_seed) for case in spec.cases
    }
    with _evaluator(daemon, chip) as evaluator:
        for case in spec.cases:
            result = _evaluate(evaluator, spec, spec.baseline, protocol, (case.case_id,))
            checks[f"baseline on case {case.case_id}"] = [str(each) for each in result.all_diagnostics]
    for name, complaints in checks.items():
        print_check(console, name, complaints)
    if any(checks.values()):
        raise OperatorFormatError(f"{spec.op_id} did not pass every check")


@app.command()
def evaluate(
    op: Operator,
    op_dir: OpDir = None,
    tiling_file: Annotated[Path | None, SourceFileOption] = None,
    kernel_file: Annotated[Path | None, SourceFileOption] = None,
    case: Annotated[str | None, typer.Option(metavar="ID", help="Only this case.")] = None,
    chip: Chip = "910B2",
    daemon: Daemon = None,
    as_json: Json = False,
) -> None:
    """Evaluate an operator with another tiling or kernel source beside its own."""
    from ascend_gym.report.console import print_evaluation

    spec = load_operator(op, op_dir=op_dir)
    candidate = spec.baseline.rewritten(tiling=_text(tiling_file), kernel=_text(kernel_file))
    case_ids = () if case is None else (_case_id(spec, case),)
    protocol = MeasureProtocol(chip=chip)
    with _evaluator(daemon, chip) as evaluator:
        result = _evaluate(evaluator, spec, candidate, protocol, case_ids)
        same = candidate == spec.baseline
        baseline = result if same else _evaluate(evaluator, spec, spec.baseline, protocol, case_ids)
    summary = evaluation_summary(spec, result, baseline)
    if as_json:
        typer.echo(to_json(summary))
    else:
        print_evaluation(_console(), summary, result.all_diagnostics)
    raise typer.Exit(_EXIT_BY_BLAME.get(rule_of(result.status).blame, 0))


@app.command()
def optimize(
    op: Operator,
    op_dir: OpDir = None,
    method: Annotated[Method, typer.Option(help="Search method.")] = Method.BEST_OF_N,
    budget: Annotated[int, typer.Option(min=1, help="Evaluations that may be spent.")] = 20,
    model: Annotated[str, typer.Option(help="'offline', or a model at $OPENAI_BASE_URL.")] = "offline",
    seed: Annotated[int, typer.Option(help="Seed of the run.")] = 0,
    chip: Chip = "910B2",
    daemon: Daemon = None,
    out: Annotated[Path | None, typer.Option(help="New folder for journal and best candidate.")] = None,
    in_flight: Annotated[int, typer.Option(min=1, help="Evaluations under way at a time.")] = 2,
    as_json: Json = False,
) -> None:
    """Search for a faster implementation of an operator."""
    from ascend_gym.report.candidate_files import unified_diff
    from ascend_gym.report.console import SearchView, print_search
    from ascend_gym.report.run_folder import new_run_folder, save_search
    from ascend_gym.search.journal import Journal
    from ascend_gym.search.ledger import Budget

    spec = load_operator(op, op_dir=op_dir)
    strategy = _strategy(method, spec, model, budget, seed)
    folder = new_run_folder(out, f"{spec.name}-{method.value}-seed{seed}")
    settings = {"method": method.value, "model": model, "budget": budget, "seed": seed}
    view = SearchView(_console(stderr=as_json), budget)
    with _evaluator(daemon, chip) as evaluator, Journal(folder) as journal, view:
        outcome = run_search(
            spec,
            strategy,
            evaluator,
            Budget(budget),
            journal,
            in_flight=in_flight,
            on_event=view.show,
            protocol=MeasureProtocol(chip=chip),
            settings=settings,
        )
    summary = save_search(folder, outcome, **settings)
    if as_json:
        typer.echo(to_json(summary))
    else:
        print_search(_console(), outcome, unified_diff(spec.baseline, outcome.best), journal.path)
    _exit_unless_done(outcome)


def _exit_unless_done(outcome: SearchOutcome) -> None:
    """Exit with the status of a search whose summary, the one document of ``--json``, is printed already."""
    if outcome.stop_reason is StopReason.BASELINE_FAILED:
        _note(f"ascend-gym: {outcome.spec.op_id}: {outcome.message}")
        raise typer.Exit(EXIT_MISUSE)
    if outcome.stop_reason is StopReason.INTERRUPTED:
        raise typer.Exit(EXIT_INTERRUPTED)
    if outcome.stop_reason is StopReason.INFRASTRUCTURE:
        _note(f"ascend-gym: {outcome.message}")
        raise typer.Exit(EXIT_INFRASTRUCTURE)


def _strategy(method: Method, spec: OpSpec, model: str, budget: int, seed: int) -> Strategy:
    from ascend_gym.search.llm import model_named
    from baselines.best_of_n import BestOfN

    strategies = {Method.BEST_OF_N: BestOfN}
    return strategies[method](spec, model_named(model), samples=budget, seed=seed)


@contextmanager
def _evaluator(daemon: str | None, chip: str) -> Iterator[Evaluator]:
    from ascend_gym.client import DaemonOptions, connect
    from npu_daemon.simulator.chips import load_chip
    from npu_daemon.simulator.toolchain import obtain_toolchain

    address = daemon or default_daemon_address()
    if address is None:  # here and not in the daemon, so that people learn why the first start takes its time
        load_chip(chip)
        obtain_toolchain(cache_root(), _note)
    evaluator = connect(address, options=DaemonOptions(chip=chip))
    try:
        yield evaluator
    finally:
        evaluator.close()


def _evaluate(
    evaluator: Evaluator,
    spec: OpSpec,
    candidate: Candidate,
    protocol: MeasureProtocol,
    case_ids: tuple[str, ...],
) -> EvalResult:
    return evaluate_request(evaluator, request_for(spec, candidate, protocol, case_ids))


def _case_id(spec: OpSpec, case_id: str) -> str:
    known = [case.case_id for case in spec.cases]
    if case_id not in known:
        raise MisuseError(f"{spec.op_id} has no case {case_id!r}; its cases are {', '.join(known)}")
    return case_id


def _text(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise MisuseError(f"{path} is not UTF-8: {error}") from error


def _console(*, stderr: bool = False) -> Console:
    return Console(stderr=stderr, markup=False, highlight=False)


def _note(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _fail(error: Exception, status: Status, exit_status: int) -> None:
    """Report what ended a command before it could print its result."""
    _note(f"ascend-gym: {error}")
    if "--json" in sys.argv[1:]:  # programs that read the document learn the reason from it too
        typer.echo(to_json({"status": status.value, "message": str(error)}))
    raise SystemExit(exit_status) from error


if __name__ == "__main__":
    main()
