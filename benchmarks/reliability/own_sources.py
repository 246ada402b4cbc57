"""Operators' own sources under the verdict: what is right on cases and domain, and what fails, and why.

    python benchmarks/reliability/own_sources.py --suite cann-ops-101 --records FILE [--op NAME ...]
    python benchmarks/reliability/own_sources.py --records FILE --table

Each operator is evaluated as it is on its smallest case, or on all of them, and on its domain. Each
evaluation is a line of ``--records``, and what is there already is not done again. ``--table`` prints what is
on record as the table of docs/coverage.md. Sources that fail by a fault of theirs are upstream's business;
that is told, and not mended here.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from ascend_gym.core.append_log import AppendLog
from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import MeasureProtocol, OpSpec
from ascend_gym.core.status import Status
from ascend_gym.suite.domain import smallest_case
from ascend_gym.suite.loader import list_operators
from ascend_gym.suite.oracle import oracle_for
from ascend_gym.suite.requests import request_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.pipeline import evaluate

_SHOWN_CHARS = 300


@dataclass(frozen=True)
class Outcome:
    """How an operator's own sources end.

    Attributes:
        operator: which.
        version: digest of its folder.
        cases: that were evaluated.
        has_domain: whether it declares one.
        status: how the evaluation ended.
        message: the first diagnostic of one that is not ok.
    """

    operator: str
    version: str
    cases: str
    has_domain: bool
    status: str
    message: str


def main() -> int:
    """Evaluate what is not on record, or print the table."""
    arguments = _parse()
    with AppendLog(arguments.records) as log:
        outcomes = {each.operator: each for each in (Outcome(**record) for record in log.records)}
        if arguments.table:
            print(_table(list(outcomes.values())))
            return 0
        backend = SimulatorBackend(cache_root())
        for spec in list_operators(arguments.suite):
            known = outcomes.get(spec.op_id)
            if (arguments.op and spec.name not in arguments.op) or (
                known is not None and known.version == spec.folder_digest
            ):
                continue
            log.append(asdict(_outcome(backend, spec, all_cases=arguments.all_cases)))
    return 0


def _outcome(backend: SimulatorBackend, spec: OpSpec, *, all_cases: bool) -> Outcome:
    cases = tuple(case.case_id for case in spec.cases) if all_cases else (smallest_case(spec.cases).case_id,)
    data = CaseDataCache(cache_root() / "case_data", "own sources")
    try:
        request = request_for(spec, spec.baseline, MeasureProtocol(run_timeout_s=120.0), cases)
        result = evaluate(request, spec, backend, oracle_for(spec), data)
        status, complaints = result.status, result.all_diagnostics
        message = "" if status is Status.OK else str(complaints[0])[:_SHOWN_CHARS]
    except MisuseError as error:
        status, message = Status.INVALID_REQUEST, str(error)[:_SHOWN_CHARS]
    print(f"{spec.op_id}: {status.value} {message}", file=sys.stderr, flush=True)
    has_domain = spec.domain is not None and bool(spec.domain.input)
    return Outcome(spec.op_id, spec.folder_digest, ",".join(cases), has_domain, status.value, message)


def _table(outcomes: list[Outcome]) -> str:
    right = [each for each in outcomes if each.status == Status.OK.value]
    declared = sum(each.has_domain for each in outcomes)
    counts = ", ".join(
        f"{count} {status}" for status, count in Counter(e.status for e in outcomes).most_common()
    )
    lines = [
        f"{len(right)} of {len(outcomes)} are right on their smallest case and its domain ({counts}); "
        f"{declared} declare a domain.",
        "",
        "| operator | status | first complaint |",
        "|---|---|---|",
    ]
    failed = sorted((each for each in outcomes if each not in right), key=lambda each: each.operator)
    for each in failed:
        message = each.message.replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {each.operator.rpartition('/')[2]} | `{each.status}` | {message} |")
    return "\n".join(lines)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--suite", default="core", help="which operators")
    parser.add_argument("--op", nargs="*", help="only these")
    parser.add_argument("--all-cases", action="store_true", help="every case, in place of the smallest")
    parser.add_argument("--records", type=Path, required=True, help="file of the evaluations")
    parser.add_argument("--table", action="store_true", help="print what is on record")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
