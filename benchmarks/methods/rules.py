"""What each rewrite rule does on real operators: where it applies, compiles, stays correct and helps.

Without ``--evaluate`` only the text is looked at, which needs nothing but the sources. With it, at most two
rewrites for each rule and operator are evaluated on the simulator, on the operator's first case: that at all
places of a file at once, if the rule offers it, and the first ones otherwise. Each evaluation is a line of
``--records``, and what is there already is not done again. The table goes to standard output, progress to
standard error.

    python benchmarks/methods/rules.py --cann-ops DIR
    python benchmarks/methods/rules.py --suite core --evaluate --records FILE [--workers 2] [--json FILE]
    python benchmarks/methods/rules.py --cann-ops DIR --op exp log --evaluate --records FILE
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from ascend_gym.core.append_log import AppendLog, read_log
from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import AscendGymError
from ascend_gym.core.protocols import Evaluator
from ascend_gym.core.records import Candidate, EvalResult, MeasureProtocol, OpSpec
from ascend_gym.core.status import Status
from ascend_gym.rewrites.library import RULES
from ascend_gym.rewrites.rule import Choice, Rule, Site
from ascend_gym.suite.cann_sources import read_build_file, read_cann_candidate
from ascend_gym.suite.imported import select_operators
from ascend_gym.suite.loader import list_operators, load_operator
from ascend_gym.suite.requests import request_for
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator

SUITES = {"core": "core", "imported": "cann-ops"}
CHOICES = 2
HELPS = 0.99  # of the baseline's latency, at most
BASELINE = ""
_NOT_BUILT = frozenset({Status.BUILD_ERROR.value, Status.GUARD_REJECTED.value})


Key = tuple[str, str, str]  # operator, rule, digest of the candidate


@dataclass(frozen=True)
class Subject:
    """An operator to try rules on; ``folder`` is empty for operators of an installed suite."""

    name: str
    folder: str
    candidate: Candidate

    def load(self) -> OpSpec:
        """Return the operator with its cases."""
        return load_operator(self.name, op_dir=Path(self.folder) if self.folder else None)


@dataclass(frozen=True)
class Trial:
    """One evaluation; ``rule`` is empty for the baseline."""

    operator: str
    rule: str
    what: str
    digest: str
    status: str
    latency_us: float | None
    message: str

    @property
    def key(self) -> Key:
        """What makes it a repetition of another one."""
        return self.operator, self.rule, self.digest


@dataclass
class Row:
    """Numbers of operators for one rule: where it applies, was evaluated, and how that ended."""

    rule: str
    family: str
    applies: int = 0
    evaluated: int = 0
    compiles: int = 0
    correct: int = 0
    helps: int = 0
    best_speedup: float = 0.0


def main() -> int:
    """Count, evaluate if asked to, and print the table."""
    arguments = _parse()
    subjects = list(_subjects(arguments))
    if arguments.evaluate:
        rules = arguments.rule or [rule.name for rule in RULES]
        _evaluate_all(subjects, rules, arguments.records, arguments.workers)
    trials = list(_read(arguments.records)) if arguments.records else []
    names = {subject.name for subject in subjects}
    rows = rows_of(subjects, [trial for trial in trials if trial.operator in names])
    print(table(rows, len(subjects)))
    if arguments.json:
        report = {"operators": len(subjects), "rules": [asdict(row) for row in rows]}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


def rewrites_of(rule: Rule, candidate: Candidate) -> list[tuple[str, Candidate]]:
    """Return up to two forward rewrites with what they change: everywhere in a file first."""
    sites = sorted(rule.sites(candidate), key=lambda site: not site.covers_all)
    found: dict[str, tuple[str, Candidate]] = {}
    for site, choice in _forward(sites):
        rewritten = rule.apply(candidate, site, choice)
        found.setdefault(rewritten.digest, (f"{site.label}: {choice.label}", rewritten))
        if len(found) == CHOICES:
            break
    return list(found.values())


def rows_of(subjects: Sequence[Subject], trials: Iterable[Trial]) -> list[Row]:
    """Return a row for each rule."""
    rows = {rule.name: Row(rule.name, rule.family.value) for rule in RULES}
    for subject in subjects:
        for rule in RULES:
            rows[rule.name].applies += any(_forward(rule.sites(subject.candidate)))
    by_pair: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    baselines: dict[str, float] = {}
    for trial in trials:
        if trial.rule == BASELINE and trial.latency_us is not None:
            baselines[trial.operator] = trial.latency_us
        elif trial.rule in rows:
            by_pair[trial.rule, trial.operator].append(trial)
    for (rule_name, operator), made in by_pair.items():
        if operator in baselines:
            _add(rows[rule_name], made, baselines[operator])
    return list(rows.values())


def table(rows: Sequence[Row], operators: int) -> str:
    """Return a Markdown table with one line per rule, and the counts that matter."""
    lines = [
        f"| rule | family | applies (of {operators}) | evaluated | compiles | correct | helps | best |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        best = f"{row.best_speedup:.2f}x" if row.best_speedup else ""
        counts = f"{row.applies} | {row.evaluated} | {row.compiles} | {row.correct} | {row.helps}"
        lines.append(f"| {row.rule} | {row.family} | {counts} | {best} |")
    applying, helping = sum(row.applies > 0 for row in rows), sum(row.helps > 0 for row in rows)
    return "\n".join([*lines, "", f"{len(rows)} rules; {applying} apply somewhere; {helping} help somewhere"])


def _add(row: Row, trials: Sequence[Trial], baseline_us: float) -> None:
    latencies = [trial.latency_us for trial in trials if trial.latency_us is not None]
    row.evaluated += 1
    row.compiles += any(trial.status not in _NOT_BUILT for trial in trials)
    row.correct += bool(latencies)
    if latencies and min(latencies) < HELPS * baseline_us:
        row.helps += 1
        row.best_speedup = max(row.best_speedup, baseline_us / min(latencies))


def _forward(sites: Iterable[Site]) -> Iterator[tuple[Site, Choice]]:
    for site in sites:
        yield from ((site, choice) for choice in site.choices if choice.forward)


def _subjects(arguments: argparse.Namespace) -> Iterator[Subject]:
    if arguments.cann_ops:
        folders = select_operators(arguments.cann_ops.resolve(), arguments.op)
        for name, folder in folders.items():
            yield Subject(name, str(folder), read_cann_candidate(folder, read_build_file(folder)))
    else:
        for spec in list_operators(SUITES[arguments.suite]):
            if not arguments.op or spec.op_id.rpartition("/")[2] in arguments.op:
                yield Subject(spec.op_id, "", spec.baseline)


def _evaluate_all(subjects: Sequence[Subject], rules: Sequence[str], records: Path, workers: int) -> None:
    done = {trial.key: trial for trial in _read(records)}
    with ProcessPoolExecutor(workers) as pool, AppendLog(records) as log:
        waiting = {pool.submit(_evaluate, subject, rules, done): subject.name for subject in subjects}
        for number, future in enumerate(as_completed(waiting), start=1):
            for trial in future.result():
                log.append(asdict(trial))
            print(f"[{number}/{len(subjects)}] {waiting[future]}", file=sys.stderr, flush=True)


def _evaluate(subject: Subject, rules: Sequence[str], done: Mapping[Key, Trial]) -> list[Trial]:
    """Evaluate the baseline, and if it is correct every rewrite; return what was not done before."""
    try:
        spec = subject.load()
    except AscendGymError as error:
        failed = Status.UNSUPPORTED.value
        return [Trial(subject.name, BASELINE, "", subject.candidate.digest, failed, None, str(error))]
    evaluator = InProcessEvaluator(SimulatorBackend(cache_root()))
    trials: list[Trial] = []

    def evaluate(rule: str, rewrite: tuple[str, Candidate]) -> Trial:
        key = (subject.name, rule, rewrite[1].digest)
        if key in done:
            return done[key]
        trials.append(_trial(evaluator, spec, subject, rule, rewrite))
        return trials[-1]

    if evaluate(BASELINE, ("baseline", spec.baseline)).latency_us is not None:
        for rule in RULES:
            if rule.name in rules:
                for rewrite in rewrites_of(rule, spec.baseline):
                    evaluate(rule.name, rewrite)
    evaluator.close()
    return trials


def _trial(
    evaluator: Evaluator, spec: OpSpec, subject: Subject, rule: str, rewrite: tuple[str, Candidate]
) -> Trial:
    what, candidate = rewrite
    evaluator.submit(request_for(spec, candidate, MeasureProtocol(), (spec.cases[0].case_id,)))
    ((_, result),) = evaluator.poll(timeout_s=0.0)
    message = _first_message(result)
    return Trial(subject.name, rule, what, candidate.digest, result.status.value, result.latency_us, message)


def _first_message(result: EvalResult) -> str:
    return " ".join(str(result.all_diagnostics[0]).split())[:160] if result.all_diagnostics else ""


def _read(records: Path) -> list[Trial]:
    """Return what earlier runs recorded; a last line that was cut off is ignored."""
    return [Trial(**fields) for fields in read_log(records)] if records.exists() else []


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cann-ops", type=Path, metavar="DIR", help="a checkout, in place of a suite")
    parser.add_argument("--suite", choices=SUITES, default="core", help="operators of an installed suite")
    parser.add_argument("--op", nargs="+", default=[], metavar="NAME", help="only these operators")
    parser.add_argument("--rule", nargs="+", default=[], metavar="NAME", help="evaluate only these rules")
    parser.add_argument("--evaluate", action="store_true", help="also build, run and price rewrites")
    parser.add_argument("--records", type=Path, metavar="FILE", help="evaluations, one a line; appended to")
    parser.add_argument("--workers", type=int, default=1, help="operators evaluated at a time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the table as JSON")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.rule) - {rule.name for rule in RULES})
    if unknown:
        parser.error(f"no rules {unknown}; there are {', '.join(rule.name for rule in RULES)}")
    if arguments.evaluate and not arguments.records:
        parser.error("--evaluate needs --records FILE, which keeps what was evaluated")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
