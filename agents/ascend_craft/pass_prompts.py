"""What a language model is asked for a pass of the lowering: its rules, an example, the files so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agents.ascend_craft.draft import language_text
from ascend_gym.core.protocols import Message
from ascend_gym.core.records import Candidate, OpSpec
from ascend_gym.rewrites.answer import render_edits
from ascend_gym.rewrites.fenced import fenced
from ascend_gym.search.llm.prompts import cases_text, render_sources
from ascend_gym.search.llm.template import render
from ascend_gym.staged.examples import Example, Examples, example_for
from ascend_gym.staged.lower import Pass
from ascend_gym.staged.operations import OPERATIONS
from ascend_gym.staged.syntax import Op, walk
from ascend_gym.staged.verify import Verified

_MAX_ANSWER_CHARS = 6000  # of an earlier answer that is quoted


@dataclass(frozen=True)
class PassQuestion:
    """One question: the passes that it asks for.

    Attributes:
        name: what it is called in journals.
        passes: the passes, in order.
    """

    name: str
    passes: tuple[Pass, ...]


ONE_PASS = PassQuestion("all", tuple(Pass))


class PassPrompts:
    """Writes the questions about programs of one operator."""

    def __init__(self, spec: OpSpec, examples: Examples) -> None:
        """Ask about ``spec``.

        Args:
            spec: the operator.
            examples: which example the questions show.
        """
        self._spec = spec
        self._example = example_for(spec, examples)

    def question(
        self, which: PassQuestion, text: str, verified: Verified, candidate: Candidate
    ) -> list[Message]:
        """Return the question for some passes: their rules, and the program with the files before them."""
        return [self._system(which, verified), self._task(which, text, candidate)]

    def complaint(
        self, which: PassQuestion, text: str, verified: Verified, candidate: Candidate, fault: str
    ) -> list[Message]:
        """Return the question to mend what passes made, after their candidate was evaluated."""
        task = self._task(which, text, candidate)
        mended = render("lower_mend", package=__package__, fault=fault)
        return [self._system(which, verified), Message(task.role, f"{task.content}\n{mended}")]

    def objection(self, answer: str, fault: str, candidate: Candidate) -> list[Message]:
        """Return what follows an answer that could not be used, or does not build."""
        sources = render_sources(candidate)
        return [
            Message("assistant", answer.strip()[:_MAX_ANSWER_CHARS] or "(no answer)"),
            Message("user", render("lower_repair", package=__package__, fault=fault, sources=sources)),
        ]

    def _system(self, which: PassQuestion, verified: Verified) -> Message:
        rules = "".join(self._rules_of(each, verified) for each in which.passes)
        count = len(which.passes)
        text = render(
            "lower_system",
            package=__package__,
            passes="all of them at once" if count > 1 else f"pass {which.name}, and leave the others alone",
            rules=rules,
            language=f"## The language\n\n{language_text()}",
        )
        return Message("system", f"{text}\n{render('answer_files', package='ascend_gym.search.llm')}")

    def _rules_of(self, one: Pass, verified: Verified) -> str:
        calls = {"calls": "\n".join(_calls(verified))} if one is Pass.STAGES else {}
        return render(f"lower_{one.value}", package=__package__, **calls)

    def _task(self, which: PassQuestion, text: str, candidate: Candidate) -> Message:
        task = "the whole translation" if len(which.passes) > 1 else f"pass {which.name}"
        content = render(
            "lower_task",
            package=__package__,
            task=task,
            name=self._spec.name,
            program=text.rstrip("\n"),
            cases=cases_text(self._spec),
            example=_shown(self._example, which) if self._example else "",
            sources=render_sources(candidate),
        )
        return Message("user", content)


def _calls(verified: Verified) -> Iterator[str]:
    """Yield a line for each instruction of a program: how it is called in Ascend C."""
    used = {each.name for each in walk(verified.program.body) if isinstance(each, Op)}
    for name in sorted(used):
        operation = OPERATIONS[name]
        operands = operation.operand_names
        call = operation.call.format(
            *operands, dst="dst", n="n", type="type", whole="n rounded up to 256 bytes", mode="mode"
        )
        yield f"  - {name}(dst, {', '.join(operands)}, n): `{call}`; {operation.notes}"


def _shown(example: Example, which: PassQuestion) -> str:
    """Return an example of some passes: its program, and what they make of the files before them."""
    after = example.lowered(which.passes[-1])
    before = {} if len(which.passes) > 1 else _before(example, which.passes[0])
    changed = [
        render_edits(path, before[path], text) if which.passes == (Pass.ALIGN,) else fenced(text, "cpp")
        for path, text in after.texts.items()
        if before.get(path) != text
    ]
    return render(
        "lower_example",
        package=__package__,
        name=example.spec.name,
        program=example.text.rstrip("\n"),
        sources="\n".join(changed),
    )


def _before(example: Example, one: Pass) -> dict[str, str]:
    """Return the files before a pass, by path."""
    earlier = list(Pass)[: list(Pass).index(one)]
    return dict(example.lowered(earlier[-1]).texts) if earlier else {}
