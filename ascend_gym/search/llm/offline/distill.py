"""Telling what a pair of versions teaches: what is known of the motif, and what the evidence shows.

The symptom of a bottleneck is general; the pipe that limits, what each copy moves and where the time went
are read from the profile of this pair, and the change itself from its diff.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files

from pydantic import BaseModel, ConfigDict, Field

from ascend_gym.core.toml_file import read_toml
from ascend_gym.rewrites.library import RULES
from ascend_gym.rewrites.rule import Family, Pipe, Side
from ascend_gym.search.llm.offline.picking import SeededChoice

_PAIR = re.compile(
    r"operator `(?P<op_type>\w+)` \((?P<op_id>[\w./-]+), category (?P<category>[^:]+): .*\) differ in one "
    r"optimisation motif, `(?P<motif>\w+)` at (?P<site>.*)\. Both are correct"
)
_CASE = re.compile(r"^Profile of case `?([\w.-]+?)`?, in which", re.MULTILINE)
_CHANGE = re.compile(r"^- (\w+): (\S+) -> (\S+)$", re.MULTILINE)
_DIFF = re.compile(r"^```diff\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SIDES = {Side.TILING: "host", Side.KERNEL: "kernel", Side.BOTH: "operator"}
_PIPE_FAMILIES = {
    Pipe.VECTOR: Family.COMPUTE,
    Pipe.SCALAR: Family.COMPUTE,
    Pipe.MTE2: Family.DATA_MOVEMENT,
    Pipe.MTE3: Family.DATA_MOVEMENT,
}
_LARGEST = "In the case with the largest effect,"
_BUSY = 0.8
_OWN_TIME = 0.3
_TELLING_FACTOR = 1.05
_MAX_CHANGES = 5
_MAX_QUOTED_LINES = 3
_COUNTS = ("block_dim", "aiv_vec_instructions", "aiv_mte2_instructions", "aiv_mte3_instructions")
_SIZES = (
    "gm_to_ub_bytes_per_instruction",
    "ub_to_gm_bytes_per_instruction",
    "gm_to_ub_bytes",
    "ub_to_gm_bytes",
)
_TIMES = tuple(f"aiv_{pipe.value}_time" for pipe in Pipe)


class Mechanism(BaseModel):
    """Why a kind of motif helps, in general.

    Attributes:
        motifs: rewrite rules that it explains.
        family: family whose other rules it explains.
        title: what the fast version does, in one line.
        symptom: how the slow version shows in profile and code.
        applicability: code and shapes for which it helps.
        mechanism: why the slow version is slow.
        effect: what changes in the profile.
        chain: from the code to the latency.
        keywords: words to find it by.
        reusable_when: conditions under which it can be used.
        avoid_when: conditions under which it cannot.
        guidance: how to apply it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    motifs: tuple[str, ...] = ()
    family: Family | None = None
    title: str = Field(min_length=1)
    symptom: str = Field(min_length=1)
    applicability: str = Field(min_length=1)
    mechanism: str = Field(min_length=1)
    effect: str = Field(min_length=1)
    chain: tuple[str, ...] = Field(min_length=1)
    keywords: tuple[str, ...] = Field(min_length=1)
    reusable_when: tuple[str, ...] = Field(min_length=1)
    avoid_when: tuple[str, ...] = Field(min_length=1)
    guidance: str = Field(min_length=1)


def mechanism_of(motif: str, family: Family) -> Mechanism:
    """Return what is known of a motif, or of its family where nothing is known of itself."""
    known = mechanisms()
    own = [each for each in known if motif in each.motifs]
    return own[0] if own else next(each for each in known if each.family is family)


@cache
def mechanisms() -> tuple[Mechanism, ...]:
    """Return all that is known, in the order of the file."""
    with as_file(files(__package__) / "mechanisms.toml") as path:
        return tuple(Mechanism.model_validate(entry) for entry in read_toml(path)["mechanism"])


@dataclass(frozen=True)
class _Evidence:
    """What a prompt shows of a pair: figures of the profile of the slow and of the fast version."""

    slow: Mapping[str, float]
    fast: Mapping[str, float]

    @property
    def saved_pipe(self) -> Pipe | None:
        """The pipe whose own work shrank enough to explain the time saved; ``None`` if waiting shrank."""
        saved = {pipe: self._saved(f"aiv_{pipe.value}_time") for pipe in Pipe}
        pipe = max(saved, key=lambda each: saved[each])
        return pipe if saved[pipe] > max(0.0, _OWN_TIME * self._saved("aiv_time")) else None

    def state(self) -> str:
        """Return what the profile of the slow version shows."""
        ratios = {pipe: self.slow.get(f"aiv_{pipe.value}_ratio", 0.0) for pipe in Pipe}
        busiest = max(ratios, key=lambda pipe: ratios[pipe])
        others = ", ".join(
            f"aiv_{pipe.value}_ratio {ratio:.2f}" for pipe, ratio in ratios.items() if pipe is not busiest
        )
        facts = [
            f"the busiest pipe is {busiest.value} (aiv_{busiest.value}_ratio {ratios[busiest]:.2f}; {others})"
        ]
        if ratios[busiest] < _BUSY:
            facts.append(f"even it waits {1 - ratios[busiest]:.0%} of the time")
        for pipe, metric in (("MTE2", _SIZES[0]), ("MTE3", _SIZES[1])):
            if self.slow.get(metric):
                facts.append(f"{self.slow[metric]:.0f} bytes per {pipe} instruction")
        return "; ".join([*facts, f"block_dim {self.slow.get('block_dim', 0):.0f}"])

    def attribution(self) -> str:
        """Return where the time that was saved had gone."""
        total, pipe = self._saved("aiv_time"), self.saved_pipe
        if pipe is not None:
            own = self._saved(f"aiv_{pipe.value}_time")
            return f"{_LARGEST} {pipe.value} time falls by {own:.2f} us a core, core time by {total:.2f} us."
        if total <= 0:
            return f"{_LARGEST} core time stays: launch and balance improve."
        return f"{_LARGEST} core time falls by {total:.2f} us, hardly any of it work of a pipe: waiting went."

    def changes(self) -> list[str]:
        """Return the counts, sizes and times that changed by the largest factors, those first."""
        names = [name for name in (*_COUNTS, *_SIZES, *_TIMES) if self._factor(name) > _TELLING_FACTOR]
        names.sort(key=self._factor, reverse=True)
        return [f"{name} {self.slow[name]:.5g} -> {self.fast[name]:.5g}" for name in names[:_MAX_CHANGES]]

    def _saved(self, metric: str) -> float:
        return self.slow.get(metric, 0.0) - self.fast.get(metric, 0.0)

    def _factor(self, metric: str) -> float:
        before, after = self.slow.get(metric, 0.0), self.fast.get(metric, 0.0)
        return max(before, after) / min(before, after) if min(before, after) > 0 else 0.0


def answer(prompt: str, draws: SeededChoice) -> str:
    """Answer with one JSON object; the same evidence is told in the same words, whatever the seed."""
    pair, case = _PAIR.search(prompt), _CASE.search(prompt)
    figures = {match[1]: (float(match[2]), float(match[3])) for match in _CHANGE.finditer(prompt)}
    diff = _DIFF.search(prompt)
    if pair is None or case is None or diff is None or not figures:
        return "The prompt holds no pair of versions with profile and diff, so there is nothing to tell."
    evidence = _Evidence(
        {name: before for name, (before, _) in figures.items()},
        {name: after for name, (_, after) in figures.items()},
    )
    told = _told(pair.groupdict(), case[1], evidence, diff[1])
    return f"```json\n{json.dumps(told, indent=2, ensure_ascii=False)}\n```"


def _told(pair: Mapping[str, str], case_id: str, evidence: _Evidence, diff: str) -> dict[str, object]:
    motif = pair["motif"]
    rule = {rule.name: rule for rule in RULES}.get(motif)
    pipe = evidence.saved_pipe
    family = rule.family if rule else _PIPE_FAMILIES[pipe] if pipe else Family.PIPELINING
    side = _SIDES[rule.side] if rule else "kernel"
    known = mechanism_of(motif, family)
    changes = ", ".join(evidence.changes()) or "only waiting changed, no count or size"
    duration = f"{evidence.slow['task_duration_us']:.2f} us -> {evidence.fast['task_duration_us']:.2f} us"
    return {
        "family": f"{side}.{family.value}.{motif}",
        "title": f"{known.title} ({pair['op_type']})",
        "description": f"{known.title}. {_change_of_code(diff)}",
        "bottleneck": f"{known.symptom} In the profile {evidence.state()}.",
        "applicability": known.applicability,
        "expected_effect": f"{known.effect} Measured on case {case_id}: {duration}; {changes}.",
        "root_mechanism": f"{known.mechanism} {evidence.attribution()}",
        "causal_chain": [*known.chain, f"task_duration_us of case {case_id}: {duration}"],
        "keywords": [*known.keywords, *([pipe.value] if pipe else ["waiting"]), *motif.split("_")],
        "reusable_when": list(known.reusable_when),
        "avoid_when": list(known.avoid_when),
        "reuse_guidance": known.guidance,
    }


def _change_of_code(diff: str) -> str:
    """Say which lines of which files became which."""
    told = []
    for file in re.split(r"^--- .*\n", diff, flags=re.MULTILINE)[1:]:
        path = file.partition("\n")[0].removeprefix("+++ b/")
        lines = file.split("\n")[1:]
        removed, added = _quoted(lines, "-"), _quoted(lines, "+")
        if removed and added:
            told.append(f"In {path}, {removed} becomes {added}.")
        elif removed or added:
            told.append(f"In {path}, {removed or added} is {'taken out' if removed else 'put in'}.")
    return " ".join(told)


def _quoted(lines: list[str], sign: str) -> str:
    changed = [" ".join(line[1:].split()) for line in lines if line.startswith(sign)]
    shown = [f"`{line}`" for line in changed if len(line) > 1]
    more = f" and {len(shown) - _MAX_QUOTED_LINES} further lines" if len(shown) > _MAX_QUOTED_LINES else ""
    return " ".join(shown[:_MAX_QUOTED_LINES]) + more
