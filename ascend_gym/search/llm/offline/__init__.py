"""A model that needs no key and no network: rewrite rules in place of a language model.

It sees what a language model sees, and reads past the sheets about the target and its calls: its rules are
written with that knowledge. The first line ``# Task: <name>`` of a prompt says
what is asked; each task is answered by the module of its name, in the format that the prompt asks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ascend_gym.core.digest import digest_of
from ascend_gym.core.protocols import Completion, Ending, Message
from ascend_gym.search.llm.offline import (
    diagnose,
    distill,
    iterate,
    mutate_tiling,
    refine,
    rewind,
    rewrite,
    template,
)
from ascend_gym.search.llm.offline.picking import SeededChoice
from ascend_gym.search.llm.sheets import without_sheets

NAME = "offline"

_CHARACTERS_PER_TOKEN = 4
_OPERATOR = re.compile(r"^### FILE: (op_kernel/\S+)", re.MULTILINE)
_TASK = re.compile(r"^# Task: ([\w-]+)$", re.MULTILINE)
_TASKS: Mapping[str, Callable[[str, SeededChoice], str]] = {
    "rewrite": rewrite.answer,
    "template": template.answer,
    "mutate-tiling": mutate_tiling.answer,
    "diagnose": diagnose.answer,
    "refine": refine.answer,
    "iterate": iterate.answer,
    "rewind": rewind.answer,
    "distill": distill.answer,
}
_DEFAULT_TASK = "rewrite"


class OfflineModel:
    """An ``Llm`` made of the rules in ``ascend_gym.rewrites``."""

    def complete(
        self, messages: Sequence[Message], *, seed: int, max_tokens: int, deadline_s: float
    ) -> Completion:
        """Answer the messages, read as one prompt, in well under a second; see ``Llm.complete``.

        An answer longer than ``max_tokens`` is cut off there, as a language model's would be.
        """
        prompt = without_sheets("\n\n".join(message.content for message in messages))
        whole = _answer(prompt, seed)
        text = whole[: max_tokens * _CHARACTERS_PER_TOKEN]
        read = sum(len(message.content) for message in messages)
        return Completion(
            text=text,
            prompt_tokens=read // _CHARACTERS_PER_TOKEN,
            completion_tokens=len(text) // _CHARACTERS_PER_TOKEN,
            model=NAME,
            ending=Ending.TOKEN_LIMIT if len(text) < len(whole) else Ending.COMPLETE,
        )


def _answer(prompt: str, seed: int) -> str:
    """Answer with draws of the seed, the task and the operator: other words for the same give the same draws.

    The seed tells the steps of a method apart. A prompt without sources is told apart by its text.
    """
    named, operator = _TASK.search(prompt), _OPERATOR.search(prompt)
    task = named[1] if named else _DEFAULT_TASK
    if task not in _TASKS:
        return f"The offline model does not know the task {task!r}; it knows {', '.join(_TASKS)}."
    return _TASKS[task](
        prompt, SeededChoice(digest_of(NAME, seed, task, operator[1] if operator else prompt))
    )
