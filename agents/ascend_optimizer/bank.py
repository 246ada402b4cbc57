"""The experience bank: optimisation tuples in a file of JSON lines (section 3.4.1), and as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from importlib.resources import as_file, files
from pathlib import Path

from pydantic import ValidationError

from agents.ascend_optimizer.experience import Experience
from ascend_gym.core.append_log import AppendLog, canonical_json, write_whole
from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError
from ascend_gym.rewrites.fenced import fenced

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_VARIANT_WORDS = frozenset({"v", "foreach", "list", "inplace", "grad", "custom", "d", "fast"})
_OTHER_NAMES = {"swish": ("silu",)} | {f"{name}s": (name, "scalar") for name in ("add", "mul", "max", "min")}

_FILE = "+++ "
_NUMBER = re.compile(r"\b\d+(?:\.\d+)?\w*")


def are_kin(one: str, other: str) -> bool:
    """Say whether two operators, by id or name, are the same or near twins.

    Twins are operators of which one names all that the other does, suites, versions and variants apart:
    ``core/add`` and ``cann-ops/foreach_add_list``, ``core/rms_norm`` and ``cann-ops/add_rms_norm_quant_v2``,
    ``core/muls`` and ``cann-ops/foreach_mul_scalar``.
    """
    words, others = _words(one), _words(other)
    return words <= others or others <= words


def _words(operator: str) -> frozenset[str]:
    name = operator.rsplit("/", 1)[-1]
    found = [word.lower() for word in _WORD.findall(name)]
    essential = [word for word in found if word not in _VARIANT_WORDS and not word.isdigit()]
    return frozenset(each for word in essential or found for each in _OTHER_NAMES.get(word, (word,)))


class ExperienceBank:
    """Experiences without near-duplicates, in the order in which they came.

    Of two experiences with the same change of the same operator on the same chip (see ``change_key``) the one
    with the larger measured effect stays, at the place of the first.

    A bank from ``open`` is bound to its file: what is added is on disk when ``add`` returns, and nothing in
    the file is ever overwritten. A bank from ``load`` or from the constructor lives in memory.
    """

    def __init__(self, experiences: Iterable[Experience] = ()) -> None:
        self._by_change: dict[str, Experience] = {}
        self._log: AppendLog | None = None
        for experience in experiences:
            self.add(experience)

    @classmethod
    def load(cls, path: Path) -> ExperienceBank:
        """Read a bank; a last line that a crash tore is left out, and the file stays as it is.

        Raises:
            MisuseError: there is no such file, or a whole line of it is no experience.
        """
        try:
            content = path.read_bytes()
        except OSError as error:
            raise MisuseError(
                f"no experience bank at {path}: {error}; build one with 'ascend-gym bank build'"
            ) from error
        whole = content[: content.rfind(b"\n") + 1].split(b"\n")[:-1]
        return cls(_parsed(line, path, number) for number, line in enumerate(whole, 1))

    @classmethod
    def open(cls, path: Path) -> ExperienceBank:
        """Open a bank for adding to it; the file is created when missing.

        Raises:
            MisuseError: a whole line of the file is no experience.
        """
        bank = cls.load(path) if path.exists() else cls()
        bank._log = AppendLog(path)
        return bank

    def add(self, experience: Experience) -> bool:
        """Add an experience and say whether it is in the bank now: ``False`` if a better one is."""
        key = change_key(experience)
        known = self._by_change.get(key)
        if known is not None and _evidence(known) >= _evidence(experience):
            return False
        if self._log is not None:
            self._log.append(experience.model_dump(mode="json"))
        self._by_change[key] = experience
        return True

    def close(self) -> None:
        """Close the file of a bank that was opened."""
        if self._log is not None:
            self._log.close()

    def merge(self, other: ExperienceBank) -> ExperienceBank:
        """Return a bank, in canonical order, with what both know."""
        return ExperienceBank([*self, *other]).in_order()

    def in_order(self) -> ExperienceBank:
        """Return the same bank by operator and motif: equal contents give equal files."""
        return ExperienceBank(sorted(self, key=lambda each: (each.operator, each.motif, each.digest)))

    def select(self, *, motif: str | None = None, operator: str | None = None) -> ExperienceBank:
        """Return what is known of a motif, of an operator (id or name), or of both."""
        return ExperienceBank(
            each
            for each in self
            if motif in (None, each.motif) and operator in (None, each.operator, each.operator.split("/")[-1])
        )

    def without_kin_of(self, operator: str) -> ExperienceBank:
        """Return what is known of operators but ``operator`` (id or name) and near twins of it."""
        return ExperienceBank(each for each in self if not are_kin(each.operator, operator))

    def gaining(self, least: float) -> ExperienceBank:
        """Return what is known of changes that made an operator more than ``least`` times as fast."""
        return ExperienceBank(each for each in self if each.speedup > least)

    def save(self, path: Path) -> None:
        """Write the bank to ``path`` in one step: the file is the old or the new one, never half of it."""
        lines = [canonical_json(experience.model_dump(mode="json")) + "\n" for experience in self]
        write_whole(path, "".join(lines).encode())

    @property
    def digest(self) -> str:
        """Identity of the contents, order included."""
        return digest_of("bank", [experience.digest for experience in self])

    @property
    def motifs(self) -> list[str]:
        """The motifs that the bank knows, sorted."""
        return sorted({experience.motif for experience in self})

    def __len__(self) -> int:
        return len(self._by_change)

    def __iter__(self) -> Iterator[Experience]:
        return iter(self._by_change.values())


def default_bank() -> ExperienceBank:
    """Return the bank that ships with the package: built from the core suite on the simulator."""
    with as_file(files(__package__) / "data" / "bank.jsonl") as path:
        return ExperienceBank.load(path)


def bank_at(path: Path | None) -> ExperienceBank:
    """Return the bank at ``path``, or the one that ships; see ``ExperienceBank.load``."""
    return default_bank() if path is None else ExperienceBank.load(path)


def change_key(experience: Experience) -> str:
    """Return what makes two experiences one: chip, operator and the change of its code.

    A change is its added and removed lines, each run of them with the line before and after. Blanks and
    the values of numbers do not count, so that 4096 -> 2048 and 2048 -> 1024 at one place are one change.
    """
    return digest_of(
        "change", experience.provenance.chip, experience.operator, changed_lines(experience.code_diff)
    )


def changed_lines(diff: str) -> list[str]:
    """Return the changed lines of a unified diff, and their neighbours, without blanks and numbers."""
    lines = [line for line in diff.split("\n") if line.strip() and not line.startswith(("--- ", "\\"))]
    kept: list[str] = []
    for position, line in enumerate(lines):
        around = lines[max(0, position - 1) : position + 2]
        if line.startswith(_FILE) or (line[:1] in " +-" and any(_is_change(each) for each in around)):
            kept.append(line[:1] + _NUMBER.sub("0", "".join(line[1:].split())))
    return kept


def _is_change(line: str) -> bool:
    return line.startswith(("+", "-")) and not line.startswith(_FILE)


def _evidence(experience: Experience) -> tuple[float, int, str]:
    """Rank experiences of one change: by effect, then by what is told of it, then in any fixed order."""
    return experience.speedup, len(experience.profile_evidence), experience.digest


def _parsed(line: bytes, path: Path, number: int) -> Experience:
    try:
        return Experience.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the line"
        raise MisuseError(f"{path}:{number}: no experience: {where}: {first['msg']}") from error


def to_markdown(bank: ExperienceBank) -> str:
    """Return a page with a section for each experience."""
    sections = ("\n".join(_section(number, each)) for number, each in enumerate(bank, 1))
    return "\n".join(
        [f"# Experience bank: {len(bank)} experiences of {len(bank.motifs)} motifs", "", *sections]
    )


def to_json(bank: ExperienceBank) -> str:
    """Return a JSON list of all experiences with their fields."""
    return json.dumps([each.model_dump(mode="json") for each in bank], indent=2, ensure_ascii=False)


def one_line(experience: Experience) -> str:
    """Return operator, motif, effect and title."""
    return f"{experience.operator}  {experience.motif}  {_effect(experience)}  {experience.title}"


def _effect(experience: Experience) -> str:
    return f"{experience.slow_us:.2f} -> {experience.fast_us:.2f} us ({experience.speedup:.2f}x)"


def _section(number: int, experience: Experience) -> Iterator[str]:
    yield f"## {number}. {experience.title}"
    yield ""
    yield f"- operator: {experience.operator}"
    yield f"- motif: {experience.motif} ({experience.family})"
    yield f"- measured on {experience.provenance.chip}: {_effect(experience)}"
    yield f"- affects: {', '.join(experience.metric_groups) or 'waiting alone'}"
    yield f"- bottleneck: {experience.bottleneck}"
    yield f"- applicability: {experience.applicability}"
    yield f"- expected effect: {experience.expected_effect}"
    yield f"- root mechanism: {experience.root_mechanism}"
    yield f"- causal chain: {' -> '.join(experience.causal_chain)}"
    for change in experience.profile_evidence:
        yield f"- {change.metric}: {change.before:.5g} -> {change.after:.5g}"
    yield f"- reusable when: {'; '.join(experience.reusable_when)}"
    yield f"- avoid when: {'; '.join(experience.avoid_when)}"
    yield f"- reuse guidance: {experience.reuse_guidance}"
    yield ""
    yield experience.description
    yield ""
    yield fenced(experience.code_diff, "diff")
