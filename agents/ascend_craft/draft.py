"""Where programs come from: rules that read the reference, or a language model.

Both read the specification in the comment of a skeleton's kernel, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from agents.ascend_craft.synthesis.graph import NotCoveredError
from agents.ascend_craft.synthesis.numpy_calls import SplitNeededError
from agents.ascend_craft.synthesis.pooling import pooling_program
from agents.ascend_craft.synthesis.program import program_of, with_free_names
from agents.ascend_craft.synthesis.tracing import TensorShape, trace
from agents.ascend_craft.synthesis.writer import Tensors
from ascend_gym.core.protocols import Message
from ascend_gym.core.records import OpSpec
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind
from ascend_gym.search.llm.prompts import cases_text
from ascend_gym.search.llm.template import render
from ascend_gym.search.model_client import Answer, ModelClient
from ascend_gym.staged.examples import Example, Examples, example_for
from ascend_gym.staged.hosting import DTYPES
from ascend_gym.staged.operations import OPERATIONS
from ascend_gym.staged.syntax import GENERIC

_FENCED = re.compile(r"^(```|~~~)(?:python)?\s*\n(.*?)^\1\s*$", re.M | re.S)
_FAULTS_TOLD = 4
_TENSOR = re.compile(r"^(input|output) (\w+)\[(.*)\], (.+)$", re.M)
_REFERENCE = "Reference in numpy:"


@dataclass(frozen=True)
class Draft:
    """A program that was drafted.

    Attributes:
        text: the program; ``None`` where there is none.
        problem: why there is none.
        calls: a note of each question to a model.
        final: whether asking again would be in vain.
    """

    text: str | None
    problem: str = ""
    calls: tuple[Mapping[str, Any], ...] = ()
    final: bool = False


class Drafter(Protocol):
    """Writes programs for one operator."""

    def draft(self, faults: tuple[tuple[str, str], ...]) -> Draft:
        """Return the next program.

        Args:
            faults: earlier programs with what was wrong with each, in order.
        """
        ...


class RuleDrafter:
    """Drafts by rules; what they do not cover is refused with the reason, and nothing is tried twice."""

    def __init__(self, spec: OpSpec) -> None:
        self._spec = spec

    def draft(self, faults: tuple[tuple[str, str], ...]) -> Draft:
        """Return the program of the rules."""
        if faults:
            return Draft(None, f"the rules know no other program: {faults[-1][1]}", final=True)
        try:
            return Draft(drafted(self._spec))
        except NotCoveredError as error:
            return Draft(None, f"the rules do not cover {error}", final=True)


class ModelDrafter:
    """Asks a language model, and tells it what was wrong with its earlier programs."""

    def __init__(self, spec: OpSpec, model_client: ModelClient, examples: Examples = Examples.NONE) -> None:
        """Draft programs of ``spec``.

        Args:
            spec: the operator.
            model_client: asks the model.
            examples: which example the question shows.
        """
        self._spec, self._model_client, self._asked = spec, model_client, 0
        self._example = example_for(spec, examples)

    def draft(self, faults: tuple[tuple[str, str], ...]) -> Draft:
        """Return the model's next program.

        Raises:
            ModelError: the model could not answer.
            BudgetExceededError: the budget does not cover the question.
        """
        messages = [Message("system", _system()), Message("user", self._task())]
        for text, fault in faults[-_FAULTS_TOLD:]:
            messages.append(Message("assistant", f"```python\n{text}```"))
            messages.append(Message("user", render("repair", package=__package__, fault=fault)))
        reading = self._model_client.read(messages, _program_in, "ascend-craft", self._asked)
        self._asked += 1
        if isinstance(reading.value, ParseProblem):
            return Draft(None, str(reading.value), reading.calls)
        return Draft(reading.value, calls=reading.calls)

    def _task(self) -> str:
        return render(
            "draft",
            package=__package__,
            name=self._spec.name,
            specification=_specified(self._spec),
            cases=cases_text(self._spec),
            example=_shown(self._example) if self._example else "",
        )


def _shown(example: Example) -> str:
    """Return what a question shows of another operator: its specification and its program."""
    return render(
        "draft_example",
        package=__package__,
        name=example.spec.name,
        specification=_specified(example.spec),
        program=example.text.rstrip("\n"),
    )


def _specified(spec: OpSpec) -> str:
    """Return what an operator computes; how the skeleton's comment begins is about the file that it is in."""
    about_the_file, _, specified = comment_of(spec).partition("\n\n")
    return specified or about_the_file


def _system() -> str:
    return render("draft_system", package=__package__, language=language_text())


def language_text() -> str:
    """Return the description of the language for a prompt."""
    lines = []
    for name, operation in OPERATIONS.items():
        operands = ", ".join(operation.operand_names)
        types = " ".join(sorted(operation.types))
        lines.append(f"- {name}(dst, {operands}, n): {operation.notes} [{types}]")
    return render("language", package=__package__, operations="\n".join(lines))


def _program_in(answer: Answer) -> str | ParseProblem:
    blocks = [match[2] for match in _FENCED.finditer(answer.text) if "def kernel" in match[2]]
    if len(blocks) != 1:
        return ParseProblem(
            ProblemKind.NO_FILES if not blocks else ProblemKind.INCOMPLETE,
            f"expected one fenced block with the functions host and kernel, found {len(blocks)}",
        )
    return blocks[0]


def drafted(spec: OpSpec) -> str:
    """Return the program of the rules for an operator without sources.

    Raises:
        NotCoveredError: the rules do not cover its reference; the message says why.
    """
    specified = read_specification(spec)
    tensors = specified.tensors
    try:
        graph = trace(specified.reference, tensors.inputs, tensors.outputs, spec.cases[0].attributes)
        text = pooling_program(graph, tensors) or program_of(graph, tensors)
        return with_free_names(text, [each.name for each in (*tensors.inputs, *tensors.outputs)])
    except (
        KeyError,
        IndexError,
        AttributeError,
        TypeError,
        ValueError,
        AssertionError,
        SplitNeededError,
    ) as error:
        raise NotCoveredError(f"a reference of another form ({type(error).__name__}: {error})") from error


@dataclass(frozen=True)
class Specified:
    """What a specification says.

    Attributes:
        tensors: inputs and outputs with symbolic shapes, and types.
        reference: text of the numpy reference.
    """

    tensors: Tensors
    reference: str


def read_specification(spec: OpSpec) -> Specified:
    """Return what the comment of the skeleton says, with sizes and types of the public cases.

    Raises:
        NotCoveredError: there is none, or it has types that the rules do not know.
    """
    comment = comment_of(spec)
    if _REFERENCE not in comment:
        raise NotCoveredError("an operator that has sources: there is no specification")
    head, _, reference = comment.partition(_REFERENCE)
    case = spec.cases[0]
    shapes = {tensor.name: tensor.shapes[0] for tensor in (*case.inputs, *case.outputs)}
    found: dict[str, list[TensorShape]] = {"input": [], "output": []}
    for kind, name, extents, _ in _TENSOR.findall(head):
        texts = tuple(each.strip() for each in extents.split(",") if each.strip())
        found[kind].append(TensorShape(name, texts, shapes[name]))
    attributes = {
        name: "f32" if isinstance(value, float) else "i32" for name, value in case.attributes.items()
    }
    return Specified(Tensors(found["input"], found["output"], _dtypes(spec), attributes), reference)


def comment_of(spec: OpSpec) -> str:
    """Return the comment in the kernel of a skeleton."""
    lines = spec.baseline.kernel_text.splitlines()
    return "\n".join(line[3:] for line in lines if line.startswith("//"))


def _dtypes(spec: OpSpec) -> dict[str, str]:
    """Return the type of each tensor in the language: ``T`` where it differs from case to case."""
    seen: dict[str, set[str]] = {}
    for case in spec.cases:
        for tensor in (*case.inputs, *case.outputs):
            if tensor.dtype not in DTYPES:
                raise NotCoveredError(f"{tensor.dtype.value} tensors")
            seen.setdefault(tensor.name, set()).add(DTYPES[tensor.dtype])
    return {name: types.pop() if len(types) == 1 else GENERIC for name, types in seen.items()}
