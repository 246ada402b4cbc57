"""Tools that a model may use before it answers: look up a call, or the whole profile of the version at hand.

A model asks for a tool by a line of its own, ``TOOL: lookup DataCopyPad``. That works with every endpoint and
in recordings, whatever an endpoint's own format of calls is. What a tool says costs tokens, as questions do;
the third tool, an evaluation, is what an answer with changes asks for, and is charged as such.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable

from ascend_gym.core.calls import KnownCall, known_calls
from ascend_gym.core.records import CaseResult, EvalResult
from ascend_gym.rewrites.answer import CHANGES_BEGIN
from ascend_gym.search.llm.template import render

MOST_ROUNDS = 3
"""How often a model may ask for tools before an answer; each time for several, if it likes."""

_MOST_REQUESTS = 8
_REQUEST = re.compile(r"^[ \t>*-]*`?TOOL:([^\n]*)$", re.MULTILINE)
_NAME_AND_WHAT = re.compile(r"(\w+)([^`]*)")
_NEAREST = 3


class Toolbox:
    """The tools for one question.

    Attributes:
        described: what a prompt says of them.
    """

    def __init__(self, measured: EvalResult, shown: Iterable[str] = ()) -> None:
        """Offer tools that know how a version was measured, and which calls the prompt shows, by name."""
        self._measured, self._shown = measured, set(shown)
        self._tools: dict[str, Callable[[str], str]] = {"lookup": self._looked_up, "profile": self._profile}
        self.described = render("tools", rounds=str(MOST_ROUNDS))

    def reply(self, answer: str) -> str | None:
        """Return what the tools say that an answer asks for; ``None`` if it asks for none, or has changes."""
        if CHANGES_BEGIN.search(answer):
            return None
        requests = (line.strip().removesuffix("`").strip() for line in _REQUEST.findall(answer))
        matches = map(_NAME_AND_WHAT.fullmatch, requests)
        asked = list(dict.fromkeys((each[1], each[2].strip()) for each in matches if each))[:_MOST_REQUESTS]
        said = [f"### {' '.join((name, what)).strip()}\n{self._said(name, what)}" for name, what in asked]
        return "\n\n".join(said) or None

    def _said(self, name: str, what: str) -> str:
        tool = self._tools.get(name.lower())
        if tool is None:
            return f"There is no tool {name!r}; there are: {', '.join(self._tools)}. Changes are evaluated."
        return tool(what)

    def _looked_up(self, name: str) -> str:
        """Return the page of a call, of one that was shown the example alone, or the names most like it."""
        word = name.removeprefix("AscendC::").split("(")[0].split("<")[0].strip()
        pages = {single.lower(): call for call in known_calls() for single in call.names}
        call = pages.get(word.lower())
        if call is None:
            near = difflib.get_close_matches(word.lower(), pages, n=_NEAREST)
            names = ", ".join(dict.fromkeys(pages[each].name for each in near)) or "nothing like it"
            return (
                f"The table of calls has no {word!r}; it has: {names}. Calls that it does not have may exist."
            )
        if call.name in self._shown:
            return f"Forms and limits are told above. {_example_of(call)}"
        self._shown.add(call.name)
        return _page(call)

    def _profile(self, case_id: str) -> str:
        cases = [case for case in self._measured.cases if case_id in ("", case.case_id)]
        profiles = [_profile_of(case) for case in cases if case.profile is not None]
        if profiles:
            return "\n".join(profiles)
        if cases:
            return f"Not profiled: {', '.join(case.case_id for case in cases)}."
        known = ", ".join(case.case_id for case in self._measured.cases)
        return f"There is no case {case_id!r}; there are: {known}."


def _page(call: KnownCall) -> str:
    forms = "\n".join(f"- `{form}`" for form in call.forms)
    types = f"Types: {', '.join(call.types)}." if call.types else ""
    return "\n".join(filter(None, (forms, call.about, types, _example_of(call))))


def _example_of(call: KnownCall) -> str:
    return f"For example: `{call.example}`" if call.example else "There is no example."


def _profile_of(case: CaseResult) -> str:
    """Return all figures of a case that are not 0, and its longest pauses."""
    figures = case.profile.model_dump() if case.profile else {}
    shown = [f"{name}={value:.6g}" for name, value in figures.items() if value]
    waits = case.cores.wait_ratios if case.cores else {}
    shown += [f"{name}={ratio:.3f}" for name, ratio in sorted(waits.items()) if ratio]
    stalls = [
        f"- {each.pipe} pauses {each.wait_ratio:.1%} of the time before {each.at}, after {each.waits_for}"
        for each in case.stalls
    ]
    head = f"{case.case_id}, times in us, means over the cores that ran: {', '.join(shown)}"
    return "\n".join([head, *stalls])
