"""Shared parts of commands: options, help in sections, completion, the evaluator, consoles, exit statuses."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand

from ascend_gym.core.chips import CHIPS, require_chip
from ascend_gym.core.config import cache_root, default_daemon_addresses, set_connect_timeout, usable_cache
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import Candidate, Case, Convention, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.core.status import Blame
from ascend_gym.env.evaluation import evaluate as evaluate_request
from ascend_gym.suite.requests import request_for

RUN = "Run"
LIMITS = "Limits"
MODEL = "Model"
EVALUATION = "Evaluation"
ASCEND_OPTIMIZER = "AscendOptimizer"
ASCEND_CRAFT = "AscendCraft"
OTHER_METHODS = "Other methods"
_OTHERS = "Options"

EXIT_MISUSE = 2
EXIT_INFRASTRUCTURE = 3
EXIT_INTERRUPTED = 130  # of a process that SIGTERM interrupted: 143
EXIT_BY_BLAME = {Blame.CALLER: EXIT_MISUSE, Blame.INFRASTRUCTURE: EXIT_INFRASTRUCTURE}
OpDir = Annotated[
    Path | None, typer.Option(rich_help_panel=RUN, help="Folder of an operator of your own, named OP.")
]


def _source(side: str) -> Any:
    """Return the option of a file to use in place of one side of an operator."""
    return typer.Option(
        exists=True,
        dir_okay=False,
        readable=True,
        help=f"{side} source to use instead of the operator's own.",
    )


TilingFile = Annotated[Path | None, _source("Tiling")]
KernelFile = Annotated[Path | None, _source("Kernel")]
Daemon = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ADDR",
        rich_help_panel=EVALUATION,
        help="Daemon, such as tcp://host:5710; repeatable; by default a private one is started.",
    ),
]
ConventionOption = Annotated[
    Convention,
    typer.Option(
        "--convention",
        help="What launches find in caches: nothing, what other kernels left, or their own.",
    ),
]


def _with_timeout(timeout_s: float | None) -> float | None:
    if timeout_s is not None:
        set_connect_timeout(timeout_s)
    return timeout_s


ConnectTimeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        rich_help_panel=EVALUATION,
        callback=_with_timeout,
        help="How long a daemon may be unreachable; default 10, and 60 once the only one has answered.",
    ),
]
AcrossVersions = Annotated[
    bool,
    typer.Option(
        "--across-versions",
        rich_help_panel=EVALUATION,
        help="Go on with another simulator or harness than the run began with; the journal says where.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]


class SectionedCommand(TyperCommand):
    """A command whose help has its options below the headings that their ``rich_help_panel`` names.

    It is plain text: in the panels of Rich, terminals of 80 columns cut the names of options.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections; options without a heading come last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                others = "Arguments" if parameter.param_type_name == "argument" else _OTHERS
                heading = getattr(parameter, "rich_help_panel", None) or others
                sections.setdefault(heading, []).append(record)
        for heading, records in sorted(sections.items(), key=lambda section: section[0] == _OTHERS):
            with formatter.section(heading):
                formatter.write_dl(records)


def operators_beginning(incomplete: str) -> list[str]:
    """Return matching operators and suites; bare names unless a suite is typed."""
    from ascend_gym.suite.loader import operator_names, suite_names

    names = operator_names()
    full = [f"{suite}/{name}" for suite, name in names]
    return _beginning([*suite_names(), *(name for _, name in names), *full], incomplete)


def suites_beginning(incomplete: str) -> list[str]:
    """Return matching suites."""
    from ascend_gym.suite.loader import suite_names

    return _beginning(suite_names(), incomplete)


def methods_beginning(incomplete: str) -> list[str]:
    """Return matching search methods."""
    from ascend_gym.cli.methods import Method
    from ascend_gym.cli.outside_methods import entry_point_names

    return _beginning([*(method.value for method in Method), *entry_point_names()], incomplete)


def chips_beginning(incomplete: str) -> list[str]:
    """Return matching chips."""
    return _beginning(CHIPS, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names with a prefix, including the suite only if one is typed."""
    found = dict.fromkeys(name for name in names if name.startswith(incomplete))
    return [name for name in found if "/" in incomplete or "/" not in name]


Operator = Annotated[
    str,
    typer.Argument(
        metavar="OP", help="Operator, such as gelu or core/gelu.", autocompletion=operators_beginning
    ),
]
Suite = Annotated[str, typer.Option(help="Suite.", autocompletion=suites_beginning)]


def named_chip(chip: str | None) -> str | None:
    """Return the name that requests use for a chip of an option; a file of one is examined at once.

    Raises:
        MisuseError: there is no such chip, or a figure of its file is impossible.
    """
    if chip is None or not chip.endswith(".toml"):
        return chip if chip is None else require_chip(chip)
    from npu_daemon.simulator.chips import load_chip

    return load_chip(require_chip(chip)).name


Chip = Annotated[
    str,
    typer.Option(
        "--chip",
        "--chip-file",
        metavar="CHIP",
        rich_help_panel=EVALUATION,
        help=f"Chip whose cycles are counted: {', '.join(CHIPS)}, or a FILE.toml of your own.",
        callback=named_chip,
        autocompletion=chips_beginning,
    ),
]


@contextmanager
def opened_evaluator(daemons: Sequence[str] | None, chip: str) -> Iterator[Evaluator]:
    """Connect to ``daemons``, or start a private one; closed after the block."""
    from ascend_gym.client import DaemonOptions, connect

    addresses = daemons or default_daemon_addresses()
    if not addresses:
        prepare_simulator(chip)
    evaluator = connect(addresses, options=DaemonOptions(chip=chip))
    try:
        yield evaluator
    finally:
        evaluator.close()


@contextmanager
def opened_daemons(daemons: Sequence[str] | None, chip: str) -> Iterator[Sequence[str]]:
    """Yield the addresses of ``daemons``, or that of a private one, which is stopped after the block."""
    from ascend_gym.client import DaemonOptions, LocalDaemon

    addresses = daemons or default_daemon_addresses()
    if addresses:
        yield addresses
        return
    prepare_simulator(chip)
    with LocalDaemon(DaemonOptions(chip=chip)) as private:
        yield [private.address]


def prepare_simulator(chip: str) -> None:
    """Build the simulator in this process, so that users see why the first start takes time."""
    from npu_daemon.simulator.chips import load_chip
    from npu_daemon.simulator.toolchain import obtain_toolchain

    load_chip(chip)
    obtain_toolchain(usable_cache(cache_root()), note)


def evaluated(
    evaluator: Evaluator,
    spec: OpSpec,
    candidate: Candidate,
    protocol: MeasureProtocol,
    case_ids: tuple[str, ...] = (),
) -> EvalResult:
    """Evaluate one candidate and wait for its result.

    Args:
        evaluator: evaluator without other requests in flight.
        spec: operator.
        candidate: candidate to evaluate.
        protocol: measurement protocol.
        case_ids: cases to evaluate; empty means all.
    """
    return evaluate_request(evaluator, request_for(spec, candidate, protocol, case_ids))


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints text without markup."""
    return Console(stderr=stderr, markup=False, highlight=False)


def note(message: str) -> None:
    """Print a message that is not part of the result."""
    print(message, file=sys.stderr, flush=True)


def case_of(spec: OpSpec, case_id: str) -> Case:
    """Return the case of that name.

    Raises:
        MisuseError: the operator has no such case.
    """
    known = {case.case_id: case for case in spec.cases}
    if case_id not in known:
        raise MisuseError(f"{spec.op_id} has no case {case_id!r}; its cases are {', '.join(known)}")
    return known[case_id]


def source_text(path: Path | None) -> str | None:
    """Return the text of a source file with its line ends unchanged; ``None`` without a file.

    Raises:
        MisuseError: it is not UTF-8.
    """
    if path is None:
        return None
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise MisuseError(f"{path} is not UTF-8: {error}") from error
