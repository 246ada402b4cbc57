"""False alarms: right candidates that a verdict refuses.

Rewrites that the rules offer for the operators of the core suite are evaluated on the operator's smallest
case as if they were champions: with a second run on other values, at other addresses, and measured twice. A
rule may well break a kernel, and then the evaluation says so at the first run. A false alarm is a candidate
that was right at first and then refused, or refused by a guard, or measured twice with two results.

    python benchmarks/reliability/honest_corpus.py [--op gelu] [--per-rule 1] [--records FILE]
    python benchmarks/reliability/honest_corpus.py --cost

Each evaluation is a line of ``--records``, and what is there already is not done again. With ``--cost`` it
prints instead what the second look takes: for each operator, wall seconds of a first evaluation of all
cases, of the second look at any candidate and of that at a champion, inputs drawn beforehand.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from ascend_gym.core.append_log import AppendLog
from ascend_gym.core.config import cache_root
from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.core.status import Status
from ascend_gym.rewrites.library import RULES
from ascend_gym.suite.loader import list_operators
from ascend_gym.suite.oracle import oracle_for
from ascend_gym.suite.requests import request_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.case_data import CaseDataCache
from npu_daemon.pipeline import evaluate


@dataclass(frozen=True)
class Trial:
    """One evaluation.

    Attributes:
        operator: what it is an implementation of.
        rule: which rule made it; empty for the operator's own sources.
        digest: of the candidate.
        status: how it ended.
        alarm: the message of a false alarm, else empty.
    """

    operator: str
    rule: str
    digest: str
    status: str
    alarm: str


def main() -> int:
    """Evaluate what is not on record and print the counts; fails when there was a false alarm."""
    arguments = _parse()
    if arguments.cost:
        return _cost(SimulatorBackend(cache_root()))
    records = arguments.records or Path(tempfile.mkdtemp()) / "trials.jsonl"
    backend = SimulatorBackend(cache_root())
    with AppendLog(records) as log:
        trials = [Trial(**record) for record in log.records]
        known = {(trial.operator, trial.digest) for trial in trials}
        for spec in list_operators("core"):
            if arguments.op and spec.name not in arguments.op:
                continue
            for rule, candidate in _candidates(spec, arguments.per_rule):
                if (spec.op_id, candidate.digest) in known:
                    continue
                known.add((spec.op_id, candidate.digest))
                trials.append(_tried(backend, spec, rule, candidate))
                log.append(asdict(trials[-1]))
                print(f"{spec.op_id} {rule or 'own sources'}: {trials[-1].status}", file=sys.stderr)
    return _report(trials)


def _candidates(spec: OpSpec, per_rule: int | None) -> Iterator[tuple[str, Candidate]]:
    yield "", spec.baseline
    for rule in RULES:
        made = (
            rule.apply(spec.baseline, site, choice)
            for site in rule.sites(spec.baseline)
            for choice in site.choices
        )
        for candidate in islice(made, per_rule):
            yield rule.name, candidate


def _tried(backend: SimulatorBackend, spec: OpSpec, rule: str, candidate: Candidate) -> Trial:
    case = min(spec.cases, key=lambda each: each.traffic_bytes)
    request = request_for(spec, candidate, MeasureProtocol(), (case.case_id,))
    data = CaseDataCache(cache_root() / "case_data", "honest corpus")
    result = evaluate(request, spec, backend, oracle_for(spec), data, best_us=math.inf)
    return Trial(spec.op_id, rule, candidate.digest, result.status.value, _alarm(result))


def _cost(backend: SimulatorBackend) -> int:
    """Print CPU seconds of evaluations of each core operator: of an ordinary candidate, and of a champion."""
    data = CaseDataCache(cache_root() / "case_data", "honest corpus")
    sums = [0.0, 0.0]
    for spec in list_operators("core"):
        _cpu_seconds(backend, spec, data, best_us=0.0)  # published values, host build
        taken = [_cpu_seconds(backend, spec, data, best_us) for best_us in (0.0, math.inf)]
        sums = [total + seconds for total, seconds in zip(sums, taken, strict=True)]
        print(f"{spec.op_id:24}" + "".join(f"{seconds:8.2f} s" for seconds in taken), flush=True)
    print(f"all of core: {sums[0]:.1f} s of CPU for ordinary candidates, {sums[1]:.1f} s for champions")
    return 0


def _cpu_seconds(backend: SimulatorBackend, spec: OpSpec, data: CaseDataCache, best_us: float) -> float:
    text = f"{spec.baseline.kernel_text}\n// {time.time_ns()}\n"
    request = request_for(spec, spec.baseline.rewritten(kernel=text), MeasureProtocol())
    before = os.times()
    result = evaluate(request, spec, backend, oracle_for(spec), data, best_us=best_us)
    after = os.times()
    if result.status is not Status.OK:
        raise SystemExit(f"{spec.op_id}: {result.status.value}: {result.all_diagnostics[0]}")
    return sum(after[:4]) - sum(before[:4])


def _alarm(result: EvalResult) -> str:
    for diagnostic in result.all_diagnostics:
        repeated = diagnostic.message.startswith(("passed ", "measured twice"))
        if repeated or result.status is Status.GUARD_REJECTED:
            return str(diagnostic)
    return ""


def _report(trials: list[Trial]) -> int:
    alarms = [trial for trial in trials if trial.alarm]
    for status, count in Counter(trial.status for trial in trials).most_common():
        print(f"{count:5} {status}")
    right = sum(trial.status == Status.OK.value for trial in trials) + len(alarms)
    print(f"{len(alarms)} false alarms among {right} right candidates")
    for trial in alarms:
        print(f"  {trial.operator} {trial.rule} {trial.digest[:12]}: {trial.alarm}")
    return 1 if alarms else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--op", nargs="*", help="only these operators")
    parser.add_argument("--per-rule", type=int, help="only so many rewrites of each rule for each operator")
    parser.add_argument("--cost", action="store_true", help="print what the second look takes")
    parser.add_argument("--records", type=Path, help="file of the evaluations")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
