"""Compares what devices and the simulator say of generated kernels, from device_verdicts.csv.

The rows were recorded by hand from sessions of a public data set (docs/fidelity.md, device verdicts): for
each version and case of an operator the verdict of the device and ours, and the times of both. A time is of
the device's kernels for one call as printed; where its script recorded 45 of 50 launches and
divided by 50, the column ``share`` is 0.9. Standard output is Markdown.

    python benchmarks/fidelity/device_verdicts.py [FILE]
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROWS = Path(__file__).with_name("device_verdicts.csv")
NEAR = (0.8, 1.25)  # simulated by measured
LEFT_OUT = ("sum", "before")  # uses of times that say nothing of these prices
SHORT_US = 3.0  # calls below are too uncertain to count


@dataclass(frozen=True)
class Row:
    """One verdict or time.

    Attributes:
        operator: number and name in the data set.
        version: of the kernel.
        case: of the data set, or what stands for it.
        what: ``verdict`` or ``time_us``.
        device: what the device said: a verdict, or microseconds.
        here: what the simulator says.
        share: of the mean that is printed: 0.9 or 1.
        use: ``fitted`` where a figure rests on the row, ``sum`` where the device's time holds kernels that
            are not run here, ``before`` where the price is that of an earlier day's tree, ``explained`` where
            the verdicts differ and another thing is the cause; else empty.
    """

    operator: str
    version: str
    case: str
    what: str
    device: str
    here: str
    share: float
    use: str

    @property
    def agrees(self) -> bool:
        """Whether both verdicts are one: wrong values and an exception refuse a kernel that builds alike."""
        return self.device == self.here or {self.device, self.here} == {"wrong", "runtime_error"}

    @property
    def ratio(self) -> float:
        """Simulated by measured time."""
        return float(self.here) * self.share / float(self.device)


def load(path: Path) -> list[Row]:
    """Read the rows of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(
                f"{row['number']} {row['operator']}",
                row["version"],
                row["case"],
                row["what"],
                row["device"],
                row["here"],
                float(row["share"]),
                row["use"],
            )
            for row in csv.DictReader(file)
        ]


def compared(rows: Iterable[Row]) -> list[Row]:
    """Return the times that count: of kernels run and priced here, and not of the shortest calls."""
    times = (row for row in rows if row.what == "time_us" and row.use not in LEFT_OUT)
    return [row for row in times if float(row.device) / row.share >= SHORT_US]


def summary(rows: Sequence[Row]) -> str:
    """Return count, median ratio and share of ratios that are near."""
    if not rows:
        return "0 | | "
    near = sum(NEAR[0] <= row.ratio <= NEAR[1] for row in rows)
    return f"{len(rows)} | {median(row.ratio for row in rows):.2f} | {near} ({100 * near // len(rows)} %)"


def agreement(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Return how many verdicts agree, how many differ because of another thing, and how many there are."""
    verdicts = [row for row in rows if row.what == "verdict"]
    agreeing = sum(row.agrees for row in verdicts)
    return agreeing, sum(not row.agrees and row.use == "explained" for row in verdicts), len(verdicts)


def table(rows: Sequence[Row]) -> list[str]:
    """Return a Markdown row for each operator."""
    by_operator = defaultdict(list)
    for row in rows:
        by_operator[row.operator].append(row)
    lines = ["| operator | versions | verdicts that agree | times | median | within 0.80 to 1.25 |"]
    lines.append("|---|---|---|---|---|---|")
    for operator, own in sorted(by_operator.items(), key=lambda item: int(item[0].split()[0])):
        same, explained, count = agreement(own)
        told = f"{same} of {count}" + (f" ({explained} explained)" if explained else "")
        versions = len({row.version for row in own})
        lines.append(f"| {operator} | {versions} | {told} | {summary(compared(own))} |")
    return lines


def main() -> int:
    """Print the tables and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("rows", type=Path, nargs="?", default=ROWS, help="by default those of the repository")
    rows = load(parser.parse_args().rows)
    print("\n".join(table(rows)))
    same, explained, count = agreement(rows)
    print(f"\nverdicts: {same} of {count} agree, {explained} more are explained")
    print("\n| times | count | median simulated / measured | within 0.80 to 1.25 |\n|---|---|---|---|")
    times = compared(rows)
    print(f"| fitted | {summary([row for row in times if row.use == 'fitted'])} |")
    print(f"| not fitted | {summary([row for row in times if row.use != 'fitted'])} |")
    print(f"| all | {summary(times)} |")
    before = sum(row.use == "before" for row in rows)
    print(f"\nleft out: {before} times whose price is that of an earlier tree")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
