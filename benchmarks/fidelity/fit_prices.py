"""Fits figures of the price model on half of the measured rows, and reports the other half.

Rows are task durations: ``fidelity_rows.csv`` and ``fidelity_operators.csv`` (vendor's operators, whose
sources are in public checkouts) and ``fidelity_cases.toml`` (samples of asc-devkit). Each is run once and its
trace kept in the cache folder: figures do not change traces, so that all rows are priced again in seconds.
Of each operator's rows, in the order of the digests of their names, fits see the first, the third and so on.
Without ``--fit`` the figures are those of the chip files. A fit is drawn towards where it starts, which is
argued from public figures: ``--prior W`` adds W times the mean distance of the logarithms to the misfit.

    python benchmarks/fidelity/fit_prices.py --sources DIR [--fit NAME ...] [--prior W] [--leave-out]
        [--set N=V ...] [--write] [--sensitivity]

DIR holds checkouts named cann-ops, ops-nn, ops-math and asc-devkit. ``--write`` makes the table of rows
(``measured_tables.py``). ``--sensitivity`` moves each derived figure by 20 % in both directions, prices the
rows whose traces are small, and makes the table of what changes.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import fidelity
import measured_tables as tables
from device_verdicts import NEAR
from fidelity_operators import ROWS, case_of, operator_of, write_inputs

from ascend_gym.core.config import cache_root
from ascend_gym.core.digest import digest_of
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Candidate, Case, Convention, MeasureProtocol, OpSpec, SourceFile, Sources
from ascend_gym.suite.cann_cases import spec_with_cases
from ascend_gym.suite.cann_sources import read_build_file, read_cann_candidate
from ascend_gym.suite.imported import select_operators
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.profiling.asc_build import AscProgram, build_program
from npu_daemon.profiling.asc_program import NO_TENSORS, ProgramJob, ProgramRun, run_program
from npu_daemon.simulator.chips import Chip, Figure, load_chip
from npu_daemon.simulator.pricing import price_trace

HERE = Path(__file__).parent
FOLDER = HERE / "rows"
SAMPLES = (
    "add_hp/A2/case2",
    "add_hp/A2/case4",
    "add_hp/A2/case5",
    "data_copy/",
    "nd2nz/",
    "matmul_basic/",
    "quant_gmm/",
)
SAME = 0.05  # measured times that differ by less have no order
WORST = 1.5  # ratios beyond count as that: one row whose mechanism is missing does not rule a fit
PRIOR = 0.02
MOVES = (0.8, 1.2)
SMALL_BYTES = 150_000  # of a trace
_STEPS = (2.0, 1.4, 1.15, 1.05)
_SHIMS = {  # ours: what they include of CANN's sources that no repository of operators has
    "cann_host.h": (
        "log/log.h",
        "error_util.h",
        "util/shape_util.h",
        "op_common/log/log.h",
        "op_common/op_host/util/platform_util.h",
    ),
    "sin_cos_tiling.h": ("lib/math/sin_tiling.h", "lib/math/cos_tiling.h"),
}
_KERNEL_HEADERS = ("lib/math/sin.h", "lib/math/cos.h")  # kernel_operator.h has what they declare
_EDITS = {
    "one token a batch": (
        "op_host/turbo_quant_compress_latent_tiling.cpp",
        "int64_t tokensPerBatch = static_cast<int64_t>(tokensPerCore);",
        "int64_t tokensPerBatch = 1;",
    )
}


@dataclass(frozen=True)
class Row:
    """A measured duration.

    Attributes:
        group: operator or sample.
        name: of the row in it.
        chip: that measured.
        convention: what its launch found in the caches.
        measured_us: task duration.
        held_out: whether fits must not see it.
    """

    group: str
    name: str
    chip: str
    convention: Convention
    measured_us: float
    held_out: bool = False


Tracer = Callable[[SimulatorBackend, Path], None]
"""Leaves ``trace`` and ``ranges`` in a folder."""


@dataclass(frozen=True)
class Traced:
    """A row and where its trace lies."""

    row: Row
    folder: Path

    def price_us(self, backend: SimulatorBackend, changed: Mapping[str, float]) -> float:
        """Return its task duration with figures of ``changed`` instead of the chip's.

        Raises:
            RuntimeError: it cannot be priced.
        """
        price = price_trace(
            backend.toolchain,
            self.folder / "trace",
            changed_chip(self.row, changed),
            (self.folder / "ranges").read_text("utf-8"),
            timeout_s=900.0,
        )
        if isinstance(price, Failure):
            raise RuntimeError(f"{self.row.group} {self.row.name}: {price.diagnostics[0]}")
        return float(price["task_us"])


def changed_chip(row: Row, changed: Mapping[str, float]) -> Chip:
    """Return the chip of a row with other figures: ``NAME``, or ``cold.NAME`` and ``warm.NAME``."""
    chip = load_chip(row.chip)
    sections = {name: dict(getattr(chip, name)) for name in ("timing", "cold", "warm")}
    for name, value in changed.items():
        section, _, figure = name.rpartition(".")
        sections[section or "timing"][figure] = Figure(value=value, source="changed")
    return chip.model_copy(update=sections).under(row.convention)


def _traced_case(spec: OpSpec, case: Case, chip: str) -> Tracer:
    def trace(backend: SimulatorBackend, folder: Path) -> None:
        protocol = MeasureProtocol(
            chip=chip, run_timeout_s=300.0, memory_limit_bytes=16 << 30, output_limit_bytes=4 << 30
        )
        built = backend.build(spec, case, spec.baseline, protocol)
        if isinstance(built, Failure):
            raise RuntimeError(f"{spec.name}: {built.diagnostics[0]}")
        with tempfile.TemporaryDirectory(prefix="ascend-gym-fit-") as inputs:
            run = backend.run(built, case, write_inputs(case, Path(inputs)), protocol)
        if isinstance(run, Failure):
            raise RuntimeError(f"{spec.name}: {run.diagnostics[0]}")
        (folder / "trace").write_bytes(run.handle.job.trace.mapped())
        (folder / "ranges").write_text(run.handle.job.tensor_ranges, "utf-8")
        backend.cleanup(run)

    return trace


def _traced_sample(case: fidelity.Case, source: Path, chip: str) -> Tracer:
    def trace(backend: SimulatorBackend, folder: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="ascend-gym-fit-") as name:
            work = Path(name)
            case.write_data(work)
            program = AscProgram(source, case.defines, price_only=True)
            build = build_program(program, work, backend.toolchain, 900.0)
            if isinstance(build, Failure):
                raise RuntimeError(f"{case.case_id}: {build.diagnostics[0]}")
            run = run_program(
                ProgramJob(program, build, work, backend.toolchain, load_chip(chip), 900.0, work)
            )
            if not isinstance(run, ProgramRun):
                raise RuntimeError(f"{case.case_id}: {run.diagnostics[0]}")
            shutil.move(run.launches[0].trace, folder / "trace")
        (folder / "ranges").write_text(NO_TENSORS, "utf-8")

    return trace


def _experimental(folder: Path, edit: str) -> Candidate:
    """Return an operator of a repository whose shared host headers are not in it: ours stand for them."""
    candidate = read_cann_candidate(folder, read_build_file(folder))
    host = [file for file in candidate.host.files if not file.path.endswith("_infershape.cpp")]
    host += [
        SourceFile(path=f"op_host/{name}", text=(FOLDER / "support" / ours).read_text("utf-8"))
        for ours, names in _SHIMS.items()
        for name in names
    ]
    if edit:
        path, before, after = _EDITS[edit]
        host = [
            file.model_copy(update={"text": file.text.replace(before, after)}) if file.path == path else file
            for file in host
        ]
        if not any(after in file.text for file in host):
            raise RuntimeError(f"{folder}: {edit}: the line to change is not there")
    kernel = [
        *candidate.kernel.files,
        *(SourceFile(path=f"op_kernel/{name}", text="") for name in _KERNEL_HEADERS),
    ]
    main = candidate.host.main.replace("_infershape", "_tiling")
    return Candidate(
        host=Sources(files=tuple(host), main=main),
        kernel=Sources(files=tuple(kernel), main=candidate.kernel.main),
        build_flags=candidate.build_flags,
    )


def measured_rows(sources: Path) -> Iterable[tuple[Row, str, Tracer]]:
    """Yield all rows, what else their traces depend on, and what traces them."""
    with (HERE / "fidelity_rows.csv").open(encoding="utf-8", newline="") as stream:
        for each in csv.DictReader(stream):
            repository, _, path = each["folder"].partition(":")
            folder = sources / repository / path
            spec = spec_with_cases(folder, FOLDER / each["operator"], f"local/{folder.name}", "")
            if repository != "cann-ops":
                spec = spec.model_copy(update={"baseline": _experimental(folder, each["edit"])})
            case = next(case for case in spec.cases if case.case_id == each["case"])
            name = f"{each['case']} {each['edit']}".strip()
            row = Row(
                each["operator"],
                name,
                each["chip"],
                Convention(each["convention"]),
                float(each["measured_us"]),
            )
            yield row, spec.baseline.digest + case.model_dump_json(), _traced_case(spec, case, row.chip)
    with ROWS.open(encoding="utf-8", newline="") as stream:
        measured = list(csv.DictReader(stream))
    folders = select_operators(sources / "cann-ops", sorted({each["operator"] for each in measured}))
    specs = {folder.name: operator_of(folder) for folder in folders.values()}
    for each in measured:
        spec = specs[each["operator"]]
        case = case_of(spec, json.loads(each["shapes"]), each["dtype"], json.loads(each["attributes"]))
        name = f"{each['dtype']} {each['source'].rpartition('/')[2]}"
        row = Row(spec.name, name, each["chip"], Convention.L2_COLD, float(each["measured_us"]))
        yield row, spec.baseline.digest + case.model_dump_json(), _traced_case(spec, case, row.chip)
    figures = fidelity.load_measurements(HERE / "fidelity_measurements.csv")
    for sample in fidelity.load_cases(HERE / "fidelity_cases.toml"):
        durations = [
            value for metric, value, _ in figures[sample.case_id] if metric == fidelity.TASK_DURATION
        ]
        source = sources / "asc-devkit" / fidelity.EXAMPLES / sample.program
        if not durations or not sample.case_id.startswith(SAMPLES) or not source.is_file():
            continue
        row = Row(sample.family, sample.case_id, sample.chip or "910B1", Convention.COLD, durations[0])
        yield row, source.read_text("utf-8") + repr(sample.defines), _traced_sample(sample, source, row.chip)


def traced_rows(backend: SimulatorBackend, sources: Path, only: str) -> list[Traced]:
    """Return the rows with their traces, made where the store lacks them; rows that cannot run are named."""
    code = tables.runtime_digest()
    store = cache_root() / "traces_of_rows"
    traced = []
    for row, content, tracer in measured_rows(sources):
        if only not in f"{row.group} {row.name}":
            continue
        geometry = repr(sorted((name, figure.value) for name, figure in load_chip(row.chip).geometry.items()))
        folder = store / digest_of("trace", code, row.group, row.name, content, geometry)[:32]
        if not (folder / "ranges").is_file():
            folder.mkdir(parents=True, exist_ok=True)
            try:
                tracer(backend, folder)
            except RuntimeError as error:
                print(f"left out: {error}", file=sys.stderr)
                continue
        traced.append(Traced(row, folder))
    return _halved(traced)


def _halved(rows: Sequence[Traced]) -> list[Traced]:
    """Return the rows with every second one of a group held out, by the digests of their names."""
    of_group: dict[str, list[Row]] = {}
    for each in rows:
        of_group.setdefault(each.row.group, []).append(each.row)
    held_out = set()
    for group in of_group.values():
        group.sort(key=lambda row: digest_of("half", row.group, row.name))
        held_out |= set(group[1::2])
    return [replace(each, row=replace(each.row, held_out=each.row in held_out)) for each in rows]


Prices = dict[Row, float]


class Pricer:
    """Prices rows, each set of figures once."""

    def __init__(self, backend: SimulatorBackend) -> None:
        self._backend = backend
        self._known: dict[tuple[Path, str], float] = {}
        self._threads = ThreadPoolExecutor(max_workers=2)

    def prices(self, rows: Sequence[Traced], changed: Mapping[str, float]) -> Prices:
        """Return the task durations of ``rows`` in microseconds."""

        def price_us(traced: Traced) -> float:
            key = traced.folder, changed_chip(traced.row, changed).pricing_text()
            if key not in self._known:
                self._known[key] = traced.price_us(self._backend, changed)
            return self._known[key]

        return dict(zip((each.row for each in rows), self._threads.map(price_us, rows), strict=True))


def misfit(prices: Prices) -> float:
    """Return the mean over operators of the mean absolute logarithm of simulated / measured, each bounded."""
    by_group: dict[str, list[float]] = {}
    for row, price_us in prices.items():
        error = abs(math.log(price_us / row.measured_us))
        by_group.setdefault(row.group, []).append(min(error, math.log(WORST)))
    return statistics.mean(statistics.mean(errors) for errors in by_group.values())


def fitted(
    pricer: Pricer, rows: Sequence[Traced], start: Mapping[str, float], prior: float
) -> dict[str, float]:
    """Return figures with the least misfit that steps of one figure at a time find from ``start``.

    To the misfit comes ``prior`` times the mean distance from ``start``: what rows do not settle stays there.
    """

    def far(figures: Mapping[str, float]) -> float:
        return prior * statistics.mean(abs(math.log(figures[name] / start[name])) for name in start)

    best, least = dict(start), misfit(pricer.prices(rows, start))
    for step in _STEPS:
        improved = True
        while improved:
            improved = False
            for name in start:
                for factor in (step, 1 / step):
                    tried = {**best, name: float(f"{best[name] * factor:.4g}")}
                    if (found := misfit(pricer.prices(rows, tried)) + far(tried)) < least - 1e-5:
                        best, least, improved = tried, found, True
    return best


def summary(title: str, prices: Prices) -> str:
    """Return count, median, least and largest ratio, share in the band, and pairs in order, as one line."""
    ratios = sorted(price_us / row.measured_us for row, price_us in prices.items())
    if not ratios:
        return f"{title:44} none"
    near = sum(NEAR[0] <= ratio <= NEAR[1] for ratio in ratios)
    right = total = 0
    for one, other in combinations(prices, 2):
        apart = abs(one.measured_us - other.measured_us) > SAME * max(one.measured_us, other.measured_us)
        if one.group == other.group and apart:
            total += 1
            right += (one.measured_us < other.measured_us) == (prices[one] < prices[other])
    return (
        f"{title:44} {len(ratios):3} rows, median {statistics.median(ratios):.2f} "
        f"[{ratios[0]:.2f}, {ratios[-1]:.2f}], "
        f"{near / len(ratios):4.0%} in band, {right} of {total} pairs"
    )


def _start_of(name: str) -> float:
    section, _, figure = name.rpartition(".")
    return float(getattr(load_chip("910B2"), section or "timing")[figure].value)


def main() -> None:
    """Print the rows, and both halves with the figures of the chip files and with fitted ones."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sources", type=Path, required=True, help="folder of the checkouts")
    parser.add_argument("--fit", nargs="+", default=[], metavar="NAME", help="figures to fit")
    parser.add_argument(
        "--leave-out", action="store_true", help="fit without each operator in turn, and report it"
    )
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="other figures to price with"
    )
    parser.add_argument("--prior", type=float, default=PRIOR, help="weight of the distance from the start")
    parser.add_argument("--write", action="store_true", help="write the table of rows")
    parser.add_argument("--sensitivity", action="store_true", help="write the table of moved figures")
    parser.add_argument("--only", default="", help="rows whose operator and name contain this")
    arguments = parser.parse_args()
    backend = SimulatorBackend(cache_root())
    rows = traced_rows(backend, arguments.sources, arguments.only)
    pricer = Pricer(backend)
    if arguments.sensitivity:
        write_sensitivity(pricer, rows)
        return
    given = {name: float(value) for name, _, value in (each.partition("=") for each in arguments.set)}
    seen = [each for each in rows if not each.row.held_out]
    start = {**{name: _start_of(name) for name in arguments.fit}, **given}
    figures = (
        {**given, **fitted_only(pricer, seen, start, arguments.fit, arguments.prior)}
        if arguments.fit
        else given
    )
    prices = pricer.prices(rows, figures)
    for row, price_us in prices.items():
        half = "held out" if row.held_out else "seen"
        ratio = price_us / row.measured_us
        print(
            f"{row.group:28} {row.name:28} {row.convention.value:8} {half:9} "
            f"{row.measured_us:9.2f} {price_us:9.2f} {ratio:5.2f}"
        )
    if arguments.write:
        tables.write("measured_rows", [_record(row, price_us) for row, price_us in prices.items()])
    print({name: figures[name] for name in arguments.fit} if arguments.fit else "figures of the chip files")
    print(summary("half that fits see", {row: us for row, us in prices.items() if not row.held_out}))
    print(summary("half held out", {row: us for row, us in prices.items() if row.held_out}))
    for group in dict.fromkeys(each.row.group for each in rows):
        print(summary(f"  {group}", {row: us for row, us in prices.items() if row.group == group}))
    for group in dict.fromkeys(each.row.group for each in rows) if arguments.leave_out else ():
        others = [each for each in seen if each.row.group != group]
        left = fitted_only(pricer, others, start, arguments.fit, arguments.prior)
        of_group = pricer.prices([each for each in rows if each.row.group == group], {**given, **left})
        print(summary(f"left out: {group}", of_group), {name: left[name] for name in arguments.fit})


def _record(row: Row, price_us: float) -> dict[str, object]:
    named = {name: getattr(row, name) for name in ("group", "name", "chip", "measured_us", "held_out")}
    return {**named, "convention": row.convention.value, "simulated_us": round(price_us, 3)}


def write_sensitivity(pricer: Pricer, rows: Sequence[Traced]) -> None:
    """Write what changes when each derived figure moves, others staying as they are."""
    small = [each for each in rows if (each.folder / "trace").stat().st_size < SMALL_BYTES]
    base = pricer.prices(small, {})
    records = []
    for name, figure in sorted(load_chip("910B2").timing.items()):
        if not figure.source.startswith("derived"):
            continue
        for factor in MOVES:
            moved = pricer.prices(small, {name: float(figure.value) * factor})
            ratios = [price_us / row.measured_us for row, price_us in moved.items()]
            flips = [
                f"{one.group} {one.name} / {other.name}"
                for one, other in combinations(base, 2)
                if one.group == other.group
                and (base[one] - base[other]) * (moved[one] - moved[other]) < 0
                and abs(base[one] / base[other] - 1) > 0.01
            ]
            most = max(small, key=lambda each: abs(math.log(moved[each.row] / base[each.row]))).row
            change = moved[most] / base[most] - 1
            if abs(change) < 0.005:
                continue
            records.append(
                {
                    "figure": name,
                    "factor": factor,
                    "median": round(statistics.median(ratios), 4),
                    "in_band": sum(NEAR[0] <= ratio <= NEAR[1] for ratio in ratios),
                    "flipped": "; ".join(flips) or "none",
                    "largest_change": f"{change:+.1%} ({most.group} {most.name})",
                }
            )
            print(records[-1], file=sys.stderr, flush=True)
            tables.write("sensitivity", records, rows_priced=len(small))


def fitted_only(
    pricer: Pricer, rows: Sequence[Traced], start: Mapping[str, float], names: Sequence[str], prior: float
) -> dict[str, float]:
    """Return fitted figures of ``names``; the others of ``start`` stay."""
    fixed = {name: value for name, value in start.items() if name not in names}
    free = {name: start[name] for name in names}
    inner = _With(pricer, fixed)
    return fitted(inner, rows, free, prior)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _With:
    pricer: Pricer
    fixed: Mapping[str, float]

    def prices(self, rows: Sequence[Traced], changed: Mapping[str, float]) -> Prices:
        return self.pricer.prices(rows, {**self.fixed, **changed})


if __name__ == "__main__":
    main()
