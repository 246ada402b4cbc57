"""Whether every column of element types that the operators of a cann-ops checkout declare builds.

A column is one combination of element types of inputs and outputs (``OpDef``: ``DataType`` lists, their
combinations, ``Follow``) for the chip; layouts are ND where the definition has them. The kernel is built for
each, as for a case of those types. Nothing is run: examples are not needed, and operators without one count.

    python benchmarks/fidelity/cann_ops_columns.py --cann-ops DIR [--op NAME ...] [--json FILE [--resume]]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ascend_gym.core.append_log import write_whole
from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import AscendGymError
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Candidate, MeasureProtocol
from ascend_gym.suite.cann_sources import read_build_file, read_cann_candidate
from ascend_gym.suite.imported import select_operators
from npu_daemon.simulator.chips import Chip, load_chip
from npu_daemon.simulator.host_schema import Column, DefinitionError, OperatorDefinition
from npu_daemon.simulator.host_side import build_host, describe_operator
from npu_daemon.simulator.kernel_build import KernelVariant, build_kernel
from npu_daemon.simulator.kernel_prelude import column_prelude
from npu_daemon.simulator.toolchain import Toolchain, obtain_toolchain

BUILT = "built"
_REASON_LENGTH = 200

Row = dict[str, str]  # operator, column and outcome: BUILT, or why not


def main() -> int:
    """Build every column, print the table and return the exit status."""
    arguments = _parse()
    rows: list[Row] = json.loads(arguments.json.read_text("utf-8")) if arguments.resume else []
    unfinished = rows[-1]["operator"] if rows else None
    whole = {row["operator"] for row in rows} - {unfinished}
    toolchain = obtain_toolchain(cache_root(), print)
    folders = select_operators(arguments.cann_ops.resolve(), arguments.op)
    for number, (name, folder) in enumerate(folders.items(), start=1):
        if name in whole:
            continue
        before = {row["column"]: row for row in rows if row["operator"] == name}
        rows = [row for row in rows if row["operator"] != name]
        for row in operator_rows(folder, load_chip(arguments.chip), toolchain, before):
            rows.append(row)
            if arguments.json:
                write_whole(arguments.json, (json.dumps(rows, indent=1) + "\n").encode())
        found = [row["outcome"] for row in rows if row["operator"] == name]
        built = found.count(BUILT)
        print(f"[{number}/{len(folders)}] {name}: {built} of {len(found)}", file=sys.stderr, flush=True)
    print(table(rows))
    return 0


def operator_rows(folder: Path, chip: Chip, toolchain: Toolchain, before: Mapping[str, Row]) -> Iterator[Row]:
    """Yield a row for each column of an operator, or one for an operator that cannot be read.

    Args:
        folder: of the operator.
        chip: that it is defined for.
        toolchain: to build with.
        before: rows by column that are known from before, which are not built again.
    """
    with tempfile.TemporaryDirectory(prefix="ascend-gym-columns-") as scratch:
        try:
            candidate = read_cann_candidate(folder, read_build_file(folder))
            definition = _definition(candidate, Path(scratch), chip, toolchain)
            columns = () if isinstance(definition, Failure) else definition.dtype_columns()
        except (AscendGymError, DefinitionError) as error:
            yield _row(folder, "", str(error).removeprefix(f"{folder}/"))
            return
        if isinstance(definition, Failure):
            yield _row(folder, "", _reason(definition))
            return
        for number, column in enumerate(columns):
            types, place = _types(column), Path(scratch) / str(number)
            yield before.get(types) or _row(
                folder, types, _built(candidate, definition, column, folder.name, place, toolchain)
            )


def table(rows: Sequence[Row]) -> str:
    """Return the counts and, in Markdown, what does not build: by operator and reason."""
    columns = [row for row in rows if row["column"]]
    built = sum(row["outcome"] == BUILT for row in columns)
    operators = len({row["operator"] for row in columns})
    lines = [f"{built} of {len(columns)} columns of {operators} operators build", ""]
    lines += ["| operator | columns | built | why the others do not |", "|---|---|---|---|"]
    declared = Counter(row["operator"] for row in columns)
    for name in dict.fromkeys(row["operator"] for row in rows if row["outcome"] != BUILT):
        own = [row for row in rows if row["operator"] == name]
        reasons = dict.fromkeys(row["outcome"].replace("|", "\\|") for row in own if row["outcome"] != BUILT)
        passed = sum(row["outcome"] == BUILT for row in own)
        lines.append(f"| {name} | {declared[name]} | {passed} | {'; '.join(reasons)} |")
    return "\n".join(lines)


def _definition(
    candidate: Candidate, scratch: Path, chip: Chip, toolchain: Toolchain
) -> OperatorDefinition | Failure:
    library = build_host(candidate.host, scratch, toolchain.host_folder)
    if isinstance(library, Failure):
        return library
    return describe_operator(library, chip.tiling_geometry(), toolchain.host_folder)


def _built(
    candidate: Candidate,
    definition: OperatorDefinition,
    column: Column,
    name: str,
    folder: Path,
    toolchain: Toolchain,
) -> str:
    try:
        prelude = column_prelude(definition, column)
    except DefinitionError as error:
        return str(error)
    variant = KernelVariant(candidate.build_flags)
    failure = build_kernel(candidate.kernel, prelude, name, folder, toolchain, MeasureProtocol(), variant)
    return BUILT if failure is None else _reason(failure)


def _types(column: Column) -> str:
    inputs, outputs = (
        [slot.type.removeprefix("DT_") for slot in side] for side in (column.inputs, column.outputs)
    )
    return f"{' '.join(inputs)} to {' '.join(outputs)}"


def _row(folder: Path, column: str, outcome: str) -> Row:
    return {"operator": folder.name, "column": column, "outcome": " ".join(outcome.split())[:_REASON_LENGTH]}


def _reason(failure: Failure) -> str:
    return f"{failure.status.value}: {failure.diagnostics[0]}"


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cann-ops", type=Path, metavar="DIR", required=True, help="the checkout")
    parser.add_argument("--op", nargs="+", default=[], metavar="NAME", help="only these operators")
    parser.add_argument("--chip", default="910B2", help="the chip that operators are defined for")
    parser.add_argument("--json", type=Path, metavar="FILE", help="rewritten after every column")
    parser.add_argument("--resume", action="store_true", help="build only what is not in the file of --json")
    arguments = parser.parse_args()
    if arguments.resume and not arguments.json:
        parser.error("--resume goes on with the file of --json: name one")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
