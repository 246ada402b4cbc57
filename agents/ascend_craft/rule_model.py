"""A stand-in for a language model that lowers programs: the rules' answer, with seeded faults.

With it the passes, their builds and their repairs can be tried without a model. It says nothing about how
well a language model would do: what it mends it knows beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from ascend_gym.core.errors import ModelError
from ascend_gym.core.protocols import Completion, Message
from ascend_gym.core.records import Candidate, OpSpec
from ascend_gym.rewrites.fenced import render_file
from ascend_gym.search.llm import OFFLINE_MODEL
from ascend_gym.staged.lower import Pass, lower
from ascend_gym.staged.parse import parse
from ascend_gym.staged.verify import verify
from ascend_gym.suite.skeleton import interface_of

FAULT_RATE = 0.25
"""Share of first answers that hold a fault."""

_CHARS_PER_TOKEN = 4
_ASKED = re.compile(r"You make (?:pass (\w+)|all of them)")
_MENDS = "## What is wrong"
_PROGRAM = re.compile(r"^# Task: .*?^```python\n(.*?)^```$", re.M | re.S)


class RuleModel:
    """Answers the questions of ``ModelLowerer`` about one operator. An ``Llm``."""

    def __init__(self, spec: OpSpec, fault_rate: float = FAULT_RATE) -> None:
        """Answer about ``spec``; of first answers a share of ``fault_rate`` holds a fault."""
        self._spec, self._fault_rate = spec, fault_rate

    def complete(
        self, messages: Sequence[Message], *, seed: int, max_tokens: int, deadline_s: float
    ) -> Completion:
        """Return the files after the pass that is asked for (see ``Llm``).

        Raises:
            ModelError: the question is another one.
        """
        asked = _ASKED.search(messages[0].content)
        program = _PROGRAM.search(messages[1].content) if len(messages) > 1 else None
        if asked is None or program is None:
            raise ModelError("the offline model of the passes knows their questions alone")
        mends = _MENDS in messages[1].content  # what was evaluated is whole
        upto = Pass(asked[1]) if asked[1] and not mends else Pass.ALIGN
        candidate = self._lowered(program[1], upto)
        both = asked[1] in (None, Pass.PLAN.value)
        texts = dict(candidate.texts) if both else {candidate.kernel.main: candidate.kernel_text}
        text = self._answer(texts, upto, first=len(messages) == 2 and not mends, seed=seed)
        read = sum(len(each.content) for each in messages)
        return Completion(
            text=text,
            prompt_tokens=read // _CHARS_PER_TOKEN,
            completion_tokens=len(text) // _CHARS_PER_TOKEN,
            model=OFFLINE_MODEL,
        )

    def _lowered(self, program: str, upto: Pass) -> Candidate:
        return lower(verify(parse(program), interface_of(self._spec), self._spec.cases), upto)

    def _answer(self, texts: dict[str, str], upto: Pass, *, first: bool, seed: int) -> str:
        rng = Random(seed)
        if first and rng.random() < self._fault_rate:
            fault = rng.choice(_FAULTS[upto])
            texts = {path: fault(text) for path, text in texts.items()}
        return "\n".join(render_file(path, text) for path, text in texts.items())


def _without(pattern: str, replacement: str = "") -> Callable[[str], str]:
    """Return what replaces the first line or word that fits."""
    return lambda text: re.sub(pattern, replacement, text, count=1, flags=re.M)


_INVENTED_CALL = _without(r"AscendC::(Adds|Muls|Add|Mul|Exp|Max)\(", r"AscendC::Vector\1(")
_NEVER_FREED = _without(r"^.*FreeTensor.*\n")
_FAULTS: dict[Pass, list[Callable[[str], str]]] = {
    Pass.PLAN: [_without(r"tiling\.set_\w+", "tiling.set_missing")],
    Pass.STATE: [_without(r"QuePosition::VECIN\b", "QuePosition::VECINPUT")],
    Pass.STAGES: [_INVENTED_CALL, _NEVER_FREED],
    Pass.ALIGN: [_without(r"DataCopyPad\(", "DataCopyPadded("), _NEVER_FREED],
}
