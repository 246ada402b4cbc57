"""Rewrite rules: where they apply, with which choices, and their expected effect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from tree_sitter import Node

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.candidate_files import with_texts
from ascend_gym.rewrites.syntax import Edit, Source, parse, splice


class Family(str, Enum):
    """Kind of optimisation."""

    TILING = "tiling"
    DATA_MOVEMENT = "data_movement"
    PIPELINING = "pipelining"
    COMPUTE = "compute"
    MEMORY = "memory"


class Side(str, Enum):
    """Part of the operator that a rule edits."""

    TILING = "tiling"
    KERNEL = "kernel"
    BOTH = "both"


class Pipe(str, Enum):
    """A pipe, by its msprof name in ``aiv_<pipe>_ratio``."""

    SCALAR = "scalar"
    VECTOR = "vec"
    MTE2 = "mte2"
    MTE3 = "mte3"


@dataclass(frozen=True)
class Effect:
    """Expected effect of a rule.

    Attributes:
        pipes: pipes whose busy or waiting time it reduces; it is worth trying if they dominate a profile.
        summary: the effect in words.
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
        label: description of the change.
        edits: the change.
        forward: whether it goes in the direction of the rule's effect; ``False`` if it undoes the
            optimisation, or goes further than is expected to help.
    """

    label: str
    edits: tuple[FileEdit, ...]
    forward: bool = True


@dataclass(frozen=True)
class Site:
    """A place where a rule applies.

    Attributes:
        label: file, line and code.
        choices: ways to apply the rule here, at least one, most promising first.
        covers_all: whether this covers all other sites of its file at once.
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

    def replaced(self, node: Node, text: str) -> FileEdit:
        """Return the edit that puts ``text`` in the place of ``node``, a node of this file."""
        return self.edit(Edit(node.start_byte, node.end_byte, text))

    def label(self, byte: int, what: str) -> str:
        """Return ``path:line what``."""
        return f"{self.path}:{self.source.line_of(byte)} {what}"


class View:
    """A candidate as rules see it: its parsed files, by side."""

    def __init__(self, candidate: Candidate) -> None:
        self.host = [File(file.path, parse(file.text)) for file in candidate.host.files]
        self.kernel = [File(file.path, parse(file.text)) for file in candidate.kernel.files]


Finder = Callable[[View], Iterator[Site]]
Examples = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Rule:
    """A rewrite rule.

    Rules only see source text: they check what is visible there, and leave it to the evaluator whether
    the result is correct and faster.

    Attributes:
        name: unique name.
        family: kind of optimisation.
        side: part of the operator that it edits.
        effect: expected effect.
        find: yields its sites, in a fixed order.
        precondition: when it applies, and its assumptions.
        inverse: name of the rule or rewind that can undo it, possibly itself; ``None`` if there is none.
        examples: statements of a kernel function, or text of the host side for a rule of that side: before,
            and after the only site's first choice. Tests take them as cases.
    """

    name: str
    family: Family
    side: Side
    effect: Effect
    find: Finder
    precondition: str
    inverse: str | None = None
    examples: Examples = ()

    def sites(self, candidate: Candidate) -> list[Site]:
        """Return the places where the rule applies to ``candidate``; deterministic."""
        return list(self.find(View(candidate)))

    def apply(self, candidate: Candidate, site: Site, choice: Choice) -> Candidate:
        """Return ``candidate`` rewritten at a site that ``sites(candidate)`` returned.

        Args:
            candidate: candidate.
            site: one of its sites.
            choice: one of the site's choices.

        Raises:
            MisuseError: the choice does not belong to the site, or its edits do not fit the candidate.
        """
        if choice not in site.choices:
            raise MisuseError(f"{choice.label!r} is no choice of {site.label!r}")
        try:
            return edited(candidate, choice.edits)
        except (KeyError, ValueError) as error:
            raise MisuseError(f"{site.label!r} was found in another candidate: {error}") from error


def edited(candidate: Candidate, edits: Iterable[FileEdit]) -> Candidate:
    """Return ``candidate`` with all edits applied.

    Raises:
        KeyError: it has no file with such a path.
        ValueError: two edits overlap, or one is outside its file.
    """
    by_path: dict[str, list[Edit]] = defaultdict(list)
    for file_edit in edits:
        by_path[file_edit.path].append(file_edit.edit)
    texts = candidate.texts
    return with_texts(candidate, {path: splice(texts.get(path, ""), own) for path, own in by_path.items()})


def rule(
    family: Family, side: Side, effect: Effect, *, inverse: str | None = None, examples: Examples = ()
) -> Callable[[Finder], Rule]:
    """Make a rule from a function that finds its sites; its docstring becomes the precondition.

    Args:
        family: kind of optimisation.
        side: whether it changes tiling, kernel or both.
        effect: expected effect.
        inverse: name of the rule that undoes it, if there is one.
        examples: texts before and after it, which are its tests (``Rule.examples``).
    """

    def make(find: Finder) -> Rule:
        precondition = " ".join((find.__doc__ or "").split())
        return Rule(find.__name__, family, side, effect, find, precondition, inverse, examples)

    return make


def one_and_all(sites: Iterable[Site], label: str) -> Iterator[Site]:
    """Yield the sites and, if there are several, one more that makes the first choice of each.

    Edits of different sites must be equal or disjoint.
    """
    seen = list(sites)
    yield from seen
    if len(seen) > 1:
        edits = tuple(dict.fromkeys(edit for site in seen for edit in site.choices[0].edits))
        forward = all(site.choices[0].forward for site in seen)
        every = Choice(seen[0].choices[0].label, edits, forward)
        yield Site(f"all {len(seen)} {label}", (every,), covers_all=True)
