"""What a rewrite rule is: where it applies, with which choices, and what it is expected to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.candidate_files import with_texts
from ascend_gym.rewrites.syntax import Edit, Source, parse, splice


class Family(str, Enum):
    """What kind of optimisation a rule is."""

    TILING = "tiling"
    DATA_MOVEMENT = "data_movement"
    PIPELINING = "pipelining"
    COMPUTE = "compute"
    MEMORY = "memory"


class Side(str, Enum):
    """Which part of the operator a rule edits."""

    TILING = "tiling"
    KERNEL = "kernel"
    BOTH = "both"


class Pipe(str, Enum):
    """A pipe, by the name that msprof uses in ``aiv_<pipe>_ratio``."""

    SCALAR = "scalar"
    VECTOR = "vec"
    MTE2 = "mte2"
    MTE3 = "mte3"


@dataclass(frozen=True)
class Effect:
    """What a rule is expected to do where it helps.

    Attributes:
        pipes: pipes whose time or waiting it reduces; those that dominate a profile call for it.
        summary: the same for a reader.
    """

    pipes: tuple[Pipe, ...]
    summary: str


@dataclass(frozen=True)
class FileEdit:
    """An edit of one source file."""

    path: str
    edit: Edit


@dataclass(frozen=True)
class Choice:
    """One way to apply a rule at a site.

    Attributes:
        label: what changes.
        edits: the change.
        forward: whether it goes the way that the rule's effect speaks of; ``False`` is the way back, or
            further than is expected to help.
    """

    label: str
    edits: tuple[FileEdit, ...]
    forward: bool = True


@dataclass(frozen=True)
class Site:
    """A place where a rule applies.

    Attributes:
        label: file, line and code concerned.
        choices: the ways to apply the rule here, at least one; the most promising first.
        covers_all: whether this stands for all other sites of its file at once.
    """

    label: str
    choices: tuple[Choice, ...]
    covers_all: bool = False


@dataclass(frozen=True)
class File:
    """A source file of a candidate, parsed."""

    path: str
    source: Source

    def edit(self, edit: Edit) -> FileEdit:
        """Return ``edit`` as an edit of this file."""
        return FileEdit(self.path, edit)

    def label(self, byte: int, what: str) -> str:
        """Return ``path:line what``."""
        return f"{self.path}:{self.source.line_of(byte)} {what}"


class View:
    """A candidate as rules see it: its parsed files, by side."""

    def __init__(self, candidate: Candidate) -> None:
        self.host = [File(file.path, parse(file.text)) for file in candidate.host.files]
        self.kernel = [File(file.path, parse(file.text)) for file in candidate.kernel.files]


Finder = Callable[[View], Iterator[Site]]


@dataclass(frozen=True)
class Rule:
    """A rewrite rule.

    Rules see the text only: they ask for what can be seen there, and leave it to the evaluator whether
    the result is correct and faster.

    Attributes:
        name: unique name.
        family: kind of optimisation.
        side: what it edits.
        effect: what it is for.
        find: yields its sites, in a fixed order.
        precondition: when it applies and what it takes for granted.
        inverse: name of the rule or rewind that can undo it, possibly itself; ``None`` if there is none.
    """

    name: str
    family: Family
    side: Side
    effect: Effect
    find: Finder
    precondition: str
    inverse: str | None = None

    def sites(self, candidate: Candidate) -> list[Site]:
        """Return where the rule applies to ``candidate``; the same candidate gives the same list."""
        return list(self.find(View(candidate)))

    def apply(self, candidate: Candidate, site: Site, choice: Choice) -> Candidate:
        """Return ``candidate`` rewritten at a site that ``sites(candidate)`` returned.

        Raises:
            MisuseError: the choice is none of the site's, or its edits do not fit the candidate.
        """
        if choice not in site.choices:
            raise MisuseError(f"{choice.label!r} is no choice of {site.label!r}")
        try:
            return edited(candidate, choice.edits)
        except (KeyError, ValueError) as error:
            raise MisuseError(f"{site.label!r} was found in another candidate: {error}") from error


def edited(candidate: Candidate, edits: Iterable[FileEdit]) -> Candidate:
    """Return ``candidate`` with all edits made.

    Raises:
        KeyError: it has no file of such a path.
        ValueError: two edits overlap, or one reaches outside its file.
    """
    by_path: dict[str, list[Edit]] = defaultdict(list)
    for file_edit in edits:
        by_path[file_edit.path].append(file_edit.edit)
    texts = candidate.texts
    return with_texts(candidate, {path: splice(texts.get(path, ""), own) for path, own in by_path.items()})


def rule(
    family: Family, side: Side, effect: Effect, *, inverse: str | None = None
) -> Callable[[Finder], Rule]:
    """Make a rule of a function that finds its sites: name and precondition are the function's own.

    Args:
        family: what the rule is about.
        side: whether it changes tiling, kernel or both.
        effect: what it is for.
        inverse: name of the rule that takes it back, if there is one.
    """

    def make(find: Finder) -> Rule:
        precondition = " ".join((find.__doc__ or "").split())
        return Rule(find.__name__, family, side, effect, find, precondition, inverse)

    return make


def one_and_all(sites: Iterable[Site], label: str) -> Iterator[Site]:
    """Yield the sites, then, if there are several, one that makes the first choice of each.

    Edits of different sites must be equal or apart.
    """
    seen = list(sites)
    yield from seen
    if len(seen) > 1:
        edits = tuple(dict.fromkeys(edit for site in seen for edit in site.choices[0].edits))
        first = seen[0].choices[0]
        yield Site(f"all {len(seen)} {label}", (Choice(first.label, edits, first.forward),), covers_all=True)
