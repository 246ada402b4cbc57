"""How far each example of CATLASS for Atlas A2 gets on the simulator: one line a program.

A program is compiled unmodified by ``ascend-gym profile --asc``, runs with the arguments that its README
shows, and is right when its own comparison says so. Numbers above ``--at-most`` in these arguments are halved
until they are not. A program that reads files which another script makes is told and not run.

    python benchmarks/fidelity/catlass_examples.py --catlass DIR --csv FILE [--resume] [--only NAME ...]
        [--at-most 512] [--slice-s 540] [--chip 910B2]
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import subprocess
import sys
import time
from pathlib import Path

COLUMNS = ("example", "arguments", "class", "launches", "task_us", "seconds", "cause")
_CAUSE_LENGTH = 300
_LIST = re.compile(r"set\s*\(\s*EXAMPLE_ATLASA2\b([^)]*)\)")
_PROGRAM = re.compile(r"catlass_example_add_executable\s*\(\s*\S+\s+\w+\s+([^)]*)\)")
_RIGHT, _WRONG = "Compare success", "Compare failed"


def main() -> int:
    """Run every selected example, write the file, print the counts."""
    arguments = _parse()
    rows: dict[str, dict[str, str]] = {}
    if arguments.resume and arguments.csv.is_file():
        with arguments.csv.open(encoding="utf-8", newline="") as file:
            rows = {row["example"]: row for row in csv.DictReader(file)}
    ends_s = time.monotonic() + arguments.slice_s
    for name in atlas_a2_examples(arguments.catlass):
        if (arguments.only and name not in arguments.only) or (name in rows and name not in arguments.only):
            continue
        if time.monotonic() > ends_s:
            break
        started_s = time.monotonic()
        told = measure(arguments.catlass.resolve(), name, arguments.at_most, arguments.chip)
        rows[name] = dict.fromkeys(COLUMNS, "") | {"example": name} | told
        rows[name]["seconds"] = f"{time.monotonic() - started_s:.0f}"
        rows[name]["cause"] = " ".join(rows[name]["cause"].split())[:_CAUSE_LENGTH]
        print(f"{name}: {rows[name]['class']} {rows[name]['cause']}", file=sys.stderr, flush=True)
        with arguments.csv.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[each] for each in sorted(rows))
    counts = dict.fromkeys(dict.fromkeys(row["class"] for row in rows.values()), 0)
    for row in rows.values():
        counts[row["class"]] += 1
    print(", ".join(f"{kind}: {count}" for kind, count in sorted(counts.items())))
    return 0


def atlas_a2_examples(catlass: Path) -> list[str]:
    """Return the examples that the checkout builds for architecture 2201."""
    found = _LIST.search((catlass / "examples" / "CMakeLists.txt").read_text(encoding="utf-8"))
    return found[1].split() if found else []


def example_arguments(readme: str, name: str, at_most: int) -> list[str] | None:
    """Return the arguments of the command that a README shows, no number above ``at_most``."""
    command = re.search(rf"^\s*\./(?:\S*/)?{re.escape(name)}[ \t]+([^\n`]*)$", readme, re.MULTILINE)
    if command is None:
        return None

    def smaller(number: re.Match[str]) -> str:
        value = int(number[0])
        while value > at_most:
            value //= 2
        return str(value)

    return [re.sub(r"\d+", smaller, word.strip('"')) for word in re.findall(r'"[^"]*"|\S+', command[1])]


def measure(catlass: Path, name: str, at_most: int, chip: str) -> dict[str, str]:
    """Compile, run and judge one example; return the fields of its line."""
    folder = catlass / "examples" / name
    if any(folder.glob("*gen_data.py")):
        return {"class": "data", "cause": "it reads files that its own gen_data.py writes, which is not run"}
    listed = _PROGRAM.search((folder / "CMakeLists.txt").read_text(encoding="utf-8"))
    sources = listed[1].split() if listed else []
    if len(sources) != 1 or not (folder / sources[0]).is_file():
        return {"class": "several sources", "cause": "its build links several sources or a library"}
    readme = (folder / "README.md").read_text(encoding="utf-8", errors="replace")
    words = example_arguments(readme, name, at_most)
    if words is None:
        return {"class": "no command", "cause": "its README shows no command"}
    command = [
        *(str(Path(sys.executable).with_name("ascend-gym")), "profile", "--asc", str(folder / sources[0])),
        *("-I", str(catlass / "include"), "-I", str(catlass / "examples" / "common"), "-I", str(folder)),
        *("--define", "CATLASS_ARCH=2201", "--chip", chip, "--json"),
        *(part for word in words for part in ("--arg", word)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=catlass)
    told = {"arguments": " ".join(words)}
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return told | {"class": "not profiled", "cause": last}
    said = f"{answer['stdout']} {answer['stderr']}"
    if answer["status"] != "ok":
        first = answer["diagnostics"][0] if answer["diagnostics"] else ""
        kind = "build" if answer["status"] == "build_error" else "run"
        return told | {"class": kind, "cause": f"{answer['status']}: {first}"}
    launches = answer["launches"]
    times = [launch.get("task_duration_us", math.nan) for launch in launches]
    told |= {"launches": str(len(launches)), "task_us": " ".join(f"{each:.2f}" for each in times)}
    if _RIGHT in said and _WRONG not in said and answer["exit_status"] == 0:
        return told | {"class": "right", "cause": ""}
    return told | {"class": "wrong" if _WRONG in said else "not compared", "cause": said[-_CAUSE_LENGTH:]}


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--catlass", type=Path, required=True, metavar="DIR", help="checkout")
    parser.add_argument(
        "--csv", type=Path, required=True, metavar="FILE", help="rewritten after every program"
    )
    parser.add_argument("--resume", action="store_true", help="keep what is in the file")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these, once more")
    parser.add_argument("--at-most", type=int, default=512, help="largest number in the arguments")
    parser.add_argument("--slice-s", type=float, default=math.inf, help="begin no program after so many")
    parser.add_argument("--chip", default="910B2")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
