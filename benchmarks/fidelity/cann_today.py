"""Draws the suite ``cann-today`` from checkouts of the libraries by domain, and writes its list.

Every operator that is configured for the 910B, and whose sources are found, may be drawn, whether it works
here or not. Strata are library, part (stable or experimental) and category, the folder that it lies in. Each
gives in proportion to its size, one at least; within a stratum the digest of the name decides. The level is
1 up to 250 lines of kernel code of its own folder, 2 up to 1,000, else 3.

    python benchmarks/fidelity/cann_today.py --cann-library DIR [DIR ...] [--count 120]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import Candidate
from ascend_gym.suite import imported
from ascend_gym.suite.domain_library import operator_folders, read_library_candidate, read_library_operator

LIST = Path(imported.__file__).with_name("cann_today.toml")
_LEVEL_LINES = (250, 1000)
_DIGITS = 16
_EXAMPLES = ("example", "examples")  # categories that show how an operator is written

Row = tuple[str, str, Candidate]  # library, name, sources


def main() -> int:
    """Draw the operators and write the list."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cann-library", nargs="+", type=Path, required=True, metavar="DIR")
    parser.add_argument("--count", type=int, default=120, help="operators to draw, about")
    arguments = parser.parse_args()
    roots = [each.resolve() for each in arguments.cann_library]
    drawn = draw(candidates(roots), arguments.count)
    lines = [
        f"# {len(drawn)} operators, drawn by benchmarks/fidelity/cann_today.py: level, digest of sources"
    ]
    for root in roots:
        own = [row for row in drawn if row[0] == root.name]
        lines += ["", f"[{root.name}]", f'commit = "{_commit(root)}"', f"[{root.name}.operators]"]
        lines += [f'"{name}" = [{level(sources)}, "{sources.digest[:_DIGITS]}"]' for _, name, sources in own]
    LIST.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(drawn)} operators in {LIST}")
    return 0


def candidates(roots: Sequence[Path]) -> dict[tuple[str, str, str], list[Row]]:
    """Return the operators that may be drawn, by stratum."""
    strata: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    taken: set[str] = set()
    for root in roots:
        for name, folder in operator_folders(root).items():
            bare = name.removeprefix("experimental.")
            place = folder.relative_to(root).parts
            if place[-2] in _EXAMPLES or bare in taken:
                continue
            try:
                sources = read_library_candidate(read_library_operator(folder, root))
            except OperatorFormatError:
                continue
            taken.add(bare)
            part = "experimental" if place[0] == "experimental" else "stable"
            strata[root.name, part, place[-2]].append((root.name, name, sources))
    return strata


def draw(strata: dict[tuple[str, str, str], list[Row]], count: int) -> list[Row]:
    """Return about ``count`` of the operators: of each stratum its share, one at least."""
    total = sum(map(len, strata.values()))
    drawn: list[Row] = []
    for _, rows in sorted(strata.items()):
        share = max(1, round(count * len(rows) / total))
        drawn += sorted(rows, key=lambda row: digest_of("cann-today", row[0], row[1]))[:share]
    return sorted(drawn, key=lambda row: row[:2])


def level(sources: Candidate) -> int:
    """Return 1 to 3 by the lines of kernel code in the operator's own folder."""
    own = [file.text for file in sources.kernel.files if file.path.startswith("op_kernel/")]
    lines = sum(bool(line.strip()) for text in own for line in text.splitlines())
    return 1 + sum(lines > bound for bound in _LEVEL_LINES)


def _commit(root: Path) -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
