"""Rewrites of several moves that attempts with one of them speak for."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.library import Move
from ascend_gym.rewrites.rule import Choice, FileEdit, Rule, Site, View
from ascend_gym.rewrites.syntax import Edit
from ascend_gym.search.llm.offline.attempts import SEEN, ShownAttempt, Untried, changes_by
from ascend_gym.search.llm.offline.lessons import Lessons
from ascend_gym.search.llm.offline.places import place_of

_MOST_PLACES = 12
_SMALL_GAIN = 0.05  # natural logarithm: what may be given up for something else
_CLEAR_LOSS = 0.02
_TOO_MUCH_LOST = 0.35  # for a small gain that is given up to make up for it
_NEAR_ENOUGH = 2.1  # factor by which a number may miss the one that is wanted
_TRIED_ENOUGH = 3  # numbers of a rule, before it is tried under an older version


def combined(
    before: Candidate, rules: Sequence[Rule], untried: Untried, lessons: Lessons
) -> tuple[Candidate, list[Move]]:
    """Return a rewrite of several moves that attempts with one of them speak for; no moves where none do.

    - A rule gained at one of its places: the others follow together. Were they alike, one evaluation tells.
    - A rewrite was valid and without effect, and opens a place to a rule that had none, as a second buffer
      does to a prefetch: neither is kept by itself, so they are tried together.

    Args:
        before: the version to rewrite.
        rules: rules to choose from.
        untried: what is worth an evaluation.
        lessons: which rules gained last.
    """
    view = View(before)
    places = {rule.name: list(rule.find(view)) for rule in rules}
    gained = (rule for rule in rules if lessons.gained_last(rule.name))
    everywhere = (at_all_places(before, rule, places[rule.name]) for rule in gained)
    elsewhere = ([move] for move in everywhere if move is not None)
    for steps in chain(elsewhere, _opened(before, rules, places, untried)):
        after = before
        for step in steps:
            after = step.applied_to(after)
        if untried.accepts(after) and untried.is_new(after):
            return after, list(steps)
    return before, []


def exchanged(before: Candidate, rules: Sequence[Rule], untried: Untried) -> Iterator[list[Move]]:
    """Yield rewrites that give up numbers of a small gain for others that lost beside them.

    Axes are searched one after the other. Where two depend on each other, as the alignment of a share and the
    least work of a core do, what was found first keeps the other from gaining: so the one of those that lost
    least is tried once without it.

    Args:
        before: the version to rewrite.
        rules: rules to choose from.
        untried: what was attempted.
    """
    by_name = {rule.name: rule for rule in rules}
    for first, kept in _small_gains(untried.attempts, by_name):
        undone = _taken_back(before, by_name[first], [attempt for _, attempt in kept])
        if undone is None:
            continue
        older = undone.applied_to(before)
        later = [each for each in untried.attempts[kept[0][0] + 1 :] if _is_single(each, by_name)]
        for name in dict.fromkeys(each.rules[0] for each in later if each.rules[0] != first):
            tried = [each for each in untried.attempts if each.rules == (name,) and not each.kept]
            lost = [
                each
                for each in later
                if each in tried and -_TOO_MUCH_LOST < (each.gain or 0.0) < -_CLEAR_LOSS
            ]
            both = any({first, name} <= set(each.rules) for each in untried.attempts)
            if len(tried) < _TRIED_ENOUGH or not lost or both:
                continue
            best = max(lost, key=lambda each: each.gain or 0.0)
            move = _same_move(by_name[name], older, best)
            if move is not None:
                yield [undone, move]


def balanced(before: Candidate, rules: Sequence[Rule], untried: Untried) -> Iterator[list[Move]]:
    """Yield rewrites that change a number that lost together with one that gained, the other way.

    What matters of two numbers may be their product, as of an alignment and a least share counted in it. Then
    neither can be changed by itself. The number that lost farthest away is tried once with the other divided
    by the same factor, as nearly as its rule offers.

    Args:
        before: the version to rewrite.
        rules: rules to choose from.
        untried: what was attempted.
    """
    by_name = {rule.name: rule for rule in rules}
    for first in by_name:
        kept = [at for at, each in enumerate(untried.attempts) if each.kept and each.rules == (first,)]
        if not kept or not _is_single(untried.attempts[kept[-1]], by_name):
            continue
        later = [each for each in untried.attempts[kept[-1] + 1 :] if _is_single(each, by_name)]
        lost = [each for each in later if not each.kept and (each.gain or 0.0) < -_CLEAR_LOSS]
        lost.sort(key=lambda each: -abs(math.log(_factor(each) or 1.0)))
        for other in lost:
            name, factor = other.rules[0], _factor(other)
            both = any({first, name} <= set(each.rules) for each in untried.attempts)
            move = (
                None if both or factor is None or name == first else _same_move(by_name[name], before, other)
            )
            if move is None or factor is None:
                continue
            counter = _divided(by_name[first], move.applied_to(before), untried.attempts[kept[-1]], factor)
            if counter is not None:
                yield [move, counter]


def _factor(attempt: ShownAttempt) -> float | None:
    """Return by which factor an attempt changed a number; ``None`` if it changed several, or none."""
    place = place_of(attempt.changes)
    if place is None or not place.present:
        return None
    pairs = {pair for pair in zip(place.present, place.wanted, strict=True) if pair[0] != pair[1]}
    (old, new), *more = pairs or {(0, 0)}
    return None if more or not old * new else new / old


def _divided(rule: Rule, candidate: Candidate, kept: ShownAttempt, factor: float) -> Move | None:
    """Return the move along the axis of what was kept that divides its number by a factor, about."""
    place = place_of(kept.changes)
    best, distance = None, math.log(_NEAR_ENOUGH)
    for site in rule.sites(candidate):
        for choice in site.choices:
            there = place_of(changes_by(choice.edits, candidate))
            if place is None or there is None or there.axis != place.axis or there.present != place.wanted:
                continue
            ratio = (max(there.wanted) + 1) * factor / (max(there.present) + 1)
            if ratio > 0 and abs(math.log(ratio)) <= distance:
                best, distance = Move(rule, site, choice), abs(math.log(ratio))
    return best


def _small_gains(
    attempts: Sequence[ShownAttempt], rules: Iterable[str]
) -> Iterator[tuple[str, list[tuple[int, ShownAttempt]]]]:
    """Yield rules whose numbers gained little, with the attempts that were kept and their positions."""
    known = set(rules)
    for name in dict.fromkeys(each.rules[0] for each in attempts if _is_single(each, known)):
        kept = [(at, each) for at, each in enumerate(attempts) if each.kept and each.rules == (name,)]
        gain = sum(each.gain or 0.0 for _, each in kept)
        if kept and SEEN < gain < _SMALL_GAIN:
            yield name, kept


def _is_single(attempt: ShownAttempt, rules: Container[str]) -> bool:
    """Say whether an attempt applied one of the rules, along an axis of numbers, and was valid."""
    return not attempt.failed and attempt.is_of_numbers and attempt.rules[0] in rules


def _taken_back(candidate: Candidate, rule: Rule, kept: Sequence[ShownAttempt]) -> Move | None:
    """Return the move back to the line before what was kept; ``None`` where it is another by now."""
    places = [place_of(each.changes) for each in kept]
    first, last = _sides(kept[0]), _sides(kept[-1])
    if None in places or first is None or last is None or len({each.axis for each in places if each}) > 1:
        return None
    found = [
        (path, text, start)
        for path, text in candidate.texts.items()
        for start in _lines_equal_to(text, last[1])
    ]
    if len(found) != 1:
        return None
    path, text, start = found[0]
    begin = len(text[:start].encode())
    edit = Edit(begin, begin + len(last[1].encode()), first[0])
    choice = Choice(f"{last[1]} -> {first[0]}", (FileEdit(path, edit),), forward=False)
    return Move(rule, Site(f"{path}, back to", (choice,)), choice)


def _sides(attempt: ShownAttempt) -> tuple[str, str] | None:
    """Return the line that an attempt removed and the one that it added, if it is one of each."""
    removed = [each[1:] for each in attempt.changes if each[0] == "-"]
    added = [each[1:] for each in attempt.changes if each[0] == "+"]
    return (removed[0], added[0]) if len(removed) == len(added) == 1 else None


def _lines_equal_to(text: str, line: str) -> Iterator[int]:
    """Yield where lines of a text begin, behind their indentation, that are ``line``."""
    at = 0
    for each in text.split("\n"):
        if each.strip() == line:
            yield at + each.index(line)
        at += len(each) + 1


def _same_move(rule: Rule, candidate: Candidate, attempt: ShownAttempt) -> Move | None:
    """Return the move of a rule that changes the same lines as an attempt."""
    moves = (Move(rule, site, choice) for site in rule.sites(candidate) for choice in site.choices)
    return next((move for move in moves if changes_by(move.choice.edits, candidate) == attempt.changes), None)


def at_all_places(before: Candidate, rule: Rule, sites: Sequence[Site]) -> Move | None:
    """Return one move that applies a rule at all of its places; ``None`` where it has one, or numbers."""
    if len(sites) < 2 or any(len(site.choices) > 1 for site in sites):
        return None
    covering = next((site for site in sites if site.covers_all), None)
    if covering is not None:
        return Move(rule, covering, covering.choices[0]) if covering.choices[0].forward else None
    after, count = before, 0
    while count < _MOST_PLACES:
        move = _first_forward(rule, after)
        if move is None:
            break
        after, count = move.applied_to(after), count + 1
    if count < 2:
        return None
    old, new = before.texts, after.texts
    edits = tuple(
        FileEdit(path, Edit(0, len(old[path].encode()), new[path])) for path in old if old[path] != new[path]
    )
    choice = Choice(sites[0].choices[0].label, edits)
    return Move(rule, Site(f"all {count} places", (choice,), covers_all=True), choice)


def _opened(
    before: Candidate, rules: Sequence[Rule], places: dict[str, list[Site]], untried: Untried
) -> Iterator[Sequence[Move]]:
    """Yield each rewrite that was without effect, with a rule that applies behind it alone."""
    vain = [each for each in untried.attempts if each.without_effect and len(each.rules) == 1]
    for rule in rules:
        for site in places[rule.name]:
            for choice in site.choices:
                if not _is_one_of(choice, rule, before, vain):
                    continue
                first = Move(rule, site, choice)
                after = first.applied_to(before)
                for other in rules:
                    second = None if places[other.name] else _first_forward(other, after)
                    if second is not None and other.name != rule.inverse:
                        yield first, second


def _is_one_of(choice: Choice, rule: Rule, before: Candidate, attempts: Sequence[ShownAttempt]) -> bool:
    of_rule = [each for each in attempts if each.rules == (rule.name,)]
    return bool(of_rule) and changes_by(choice.edits, before) in [each.changes for each in of_rule]


def _first_forward(rule: Rule, candidate: Candidate) -> Move | None:
    """Return the first move of a rule that goes the way that is expected to help."""
    moves = (Move(rule, site, choice) for site in rule.sites(candidate) for choice in site.choices)
    return next((move for move in moves if move.choice.forward), None)
