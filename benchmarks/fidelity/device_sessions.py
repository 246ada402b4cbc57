"""Reads recorded sessions of agents that wrote kernels and ran them on a device: versions and verdicts.

A session is a JSON document of messages with tool calls and their results, as data sets of agent traces
hold them. Writes and edits of C++ files are replayed; what builds, comparisons and profiles said belongs to
the files as they were then. Nothing of a session is executed, but, with --run, by the simulator: kernel and
host function are compiled into a program of it (session_programs.py), which runs confined; its outputs are
compared with those of the last version that the device calls right, on random inputs of ours.

    python benchmarks/fidelity/device_sessions.py FOLDER [--out DIR] [--run] [--json FILE]

Standard output is a table with a row for each version. Bad files are named on standard error; the exit
status is then 2.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from session_files import SessionFiles
from session_outcomes import Outcome, Verdict, outcome_of
from session_programs import ProgramResult, program_texts, run_version

LONGEST_NOTE = 90


class BadSessionError(Exception):
    """A file that holds no session; the message says what was expected."""


@dataclass
class Version:
    """Kernel and host sources as they were when the device, or its compiler, was asked.

    Attributes:
        number: from 1 on, in the order of the session.
        files: C++ sources by their path in the session.
        doubtful: files that the session changed in a way that cannot be replayed.
        outcomes: what was said, in order.
    """

    number: int
    files: dict[str, str]
    doubtful: tuple[str, ...]
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """What the last decisive outcome says: a script's own failure does not decide."""
        decisive = [one.verdict for one in self.outcomes if one.verdict is not Verdict.UNDECIDED]
        return decisive[-1] if decisive else Verdict.UNDECIDED

    @property
    def note(self) -> str:
        """The reason of the verdict, or of the last outcome."""
        reasons = [one.reason for one in self.outcomes if one.verdict is self.verdict and one.reason]
        return reasons[-1] if reasons else ""

    @property
    def times_us(self) -> dict[int, float]:
        """Microseconds of each case, as last measured."""
        return {case: time for one in self.outcomes for case, time in one.times_us.items()}

    @property
    def inputs(self) -> dict[int, tuple[str, ...]]:
        """What each case was called with, as printed: ``float16:48x512`` or a value."""
        return {case: words for one in self.outcomes for case, words in one.inputs.items()}


@dataclass(frozen=True)
class Session:
    """One session: its name (the file's) and its versions."""

    name: str
    versions: tuple[Version, ...]


def load_session(path: Path) -> Session:
    """Read a session.

    Raises:
        BadSessionError: the file is no JSON document, or has no messages.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadSessionError(f"{path}: expected a JSON document: {error}") from None
    messages = document.get("messages") if isinstance(document, dict) else None
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        raise BadSessionError(f'{path}: expected {{"messages": [{{"role": ...}}, ...]}}')
    return Session(path.stem, versions_of(messages))


@dataclass(frozen=True)
class Call:
    """A call of a tool and what it returned."""

    tool: str
    arguments: dict[str, Any]
    result: str


def calls_of(messages: Sequence[dict[str, Any]]) -> Iterator[Call]:
    """Yield the calls that have a result, in the order of the results."""
    waiting: dict[str, tuple[str, dict[str, Any]]] = {}
    for message in messages:
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            try:
                arguments = json.loads(function.get("arguments") or "{}")
            except ValueError:
                continue  # cut off, as the last call of a session can be
            if isinstance(arguments, dict):
                waiting[str(call.get("id"))] = (str(function.get("name")), arguments)
        if message.get("role") == "tool" and str(message.get("tool_call_id")) in waiting:
            tool, arguments = waiting.pop(str(message["tool_call_id"]))
            yield Call(tool, arguments, text_of(message.get("content")))


def text_of(content: object) -> str:
    """Return the text of a message: a string, or parts of which some are text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def versions_of(messages: Sequence[dict[str, Any]]) -> tuple[Version, ...]:
    """Replay a session: a version for each state of the files that anything was said about."""
    files, versions = SessionFiles(), list[Version]()
    for call in calls_of(messages):
        files.apply(call.tool, call.arguments, call.result)
        outcome = outcome_of(call.tool, call.result)
        sources = files.sources()
        if outcome is None or not sources:
            continue
        known = next((one for one in versions if one.files == sources), None)
        if known is None:
            known = Version(len(versions) + 1, sources, files.doubtful())
            versions.append(known)
        known.outcomes.append(outcome)
    return tuple(versions)


def run_session(session: Session, chip: str, most_elements: int) -> dict[int, ProgramResult]:
    """Run all versions on the simulator; the last that the device calls right judges the others.

    Args:
        session: its versions.
        chip: name of the chip.
        most_elements: of a case that runs.
    """
    inputs = {case: words for one in session.versions for case, words in one.inputs.items()}
    results = {one.number: run_version(one.files, inputs, chip, most_elements) for one in session.versions}
    right = [one.number for one in session.versions if one.verdict is Verdict.RIGHT]
    if not right:
        return results
    reference = results[right[-1]]
    return {
        number: one if number == right[-1] else one.judged_by(reference) for number, one in results.items()
    }


def table(session: Session, results: dict[int, ProgramResult]) -> list[str]:
    """Return a Markdown row for each version."""
    rows = []
    for version in session.versions:
        ran = results.get(version.number)
        times = "; ".join(
            f"{case}: {time:.4g}" + (f" / {ran.times_us[case]:.4g}" if ran and case in ran.times_us else "")
            for case, time in sorted(version.times_us.items())
        )
        doubt = f"not replayed: {', '.join(version.doubtful)}; " if version.doubtful else ""
        note = " ".join((doubt + version.note).split())[:LONGEST_NOTE].replace("|", "\\|")
        here = ran.status if ran else ""
        rows.append(
            f"| {session.name} | {version.number} | {version.verdict.value} | {here} | {times} | {note} |"
        )
    return rows


def write_version(version: Version, folder: Path) -> None:
    """Write the sources of a version, the program made of them if one can be, and what the device said."""
    for text, name in ((text, Path(path).parts[-2:]) for path, text in version.files.items()):
        target = folder.joinpath("sources", *name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    program = program_texts(version.files)
    if isinstance(program, str):
        (folder / "no_program.txt").write_text(program + "\n", encoding="utf-8")
    else:
        for name, text in program.items():
            target = folder / "program" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    said = {"verdict": version.verdict, "note": version.note, "doubtful": version.doubtful}
    document = {**said, "outcomes": [asdict(one) for one in version.outcomes]}
    (folder / "device.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sessions", type=Path, help="a session, or a folder of them")
    parser.add_argument("--out", type=Path, help="folder for the versions: SESSION/NUMBER/")
    parser.add_argument("--run", action="store_true", help="build and run each version on the simulator")
    parser.add_argument("--chip", default="910B2")
    parser.add_argument("--most-elements", type=int, default=30_000_000, help="of a case that runs")
    parser.add_argument("--json", type=Path, help="also write one JSON document to this file")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and return the exit status."""
    arguments = parse(argv)
    given: Path = arguments.sessions
    paths = sorted(given.glob("*.json")) if given.is_dir() else [given]
    if not paths:
        print(f"{given}: expected files *.json", file=sys.stderr)
        return 2
    print("| session | version | device | here | case: device as printed (us) / here (us) | what was said |")
    print("|---|---|---|---|---|---|")
    status, document = 0, []
    for path in paths:
        try:
            session = load_session(path)
        except BadSessionError as error:
            print(error, file=sys.stderr)
            status = 2
            continue
        for version in session.versions if arguments.out else ():
            write_version(version, arguments.out / session.name / str(version.number))
        results = run_session(session, arguments.chip, arguments.most_elements) if arguments.run else {}
        print("\n".join(table(session, results)), flush=True)
        document.append(_described(session, results))
    if arguments.json:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return status


def _described(session: Session, results: dict[int, ProgramResult]) -> dict[str, Any]:
    versions = [
        {
            "number": version.number,
            "device": version.verdict,
            "note": version.note,
            "doubtful": version.doubtful,
            "device_us": version.times_us,
            "here": _shown(results[version.number]) if version.number in results else None,
        }
        for version in session.versions
    ]
    return {"session": session.name, "versions": versions}


def _shown(result: ProgramResult) -> dict[str, Any]:
    return {"status": result.status, "reason": result.reason, "times_us": result.times_us}


if __name__ == "__main__":
    raise SystemExit(main())
