"""Prompts: Markdown templates beside this module, filled with what is known of an operator."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ascend_gym.core.digest import digest_of
from ascend_gym.core.protocols import Message
from ascend_gym.core.records import (
    Candidate,
    Case,
    DType,
    EvalResult,
    OpSpec,
    Sources,
    TensorSpec,
    Tolerance,
)
from ascend_gym.rewrites.fenced import render_file
from ascend_gym.search.llm.measurement import describe_result
from ascend_gym.search.llm.sheets import Scope, sheets
from ascend_gym.search.llm.template import render

_HEADER = re.compile(r"(?:\s*(?:/\*(?:(?!\*/).)*\*/|//[^\n]*))+[ \t]*\n", re.DOTALL)
_LICENCE = re.compile(r"\bcopyright\b|\blicen[cs]e", re.IGNORECASE)


def prompt_digest(messages: Sequence[Message]) -> str:
    """Return the identity of a prompt, for the journal."""
    return digest_of("prompt", [(message.role, message.content) for message in messages])


def operator_fields(spec: OpSpec) -> dict[str, str]:
    """Return the fields by which prompts name an operator, and those of its cases."""
    return {"op_type": spec.op_type, "op_id": spec.op_id, **case_fields(spec)}


def case_fields(spec: OpSpec) -> dict[str, str]:
    """Return the fields of how an operator is compiled and what it is measured on."""
    return {"auto_sync": "on" if spec.auto_sync else "off", "cases": cases_text(spec)}


def system_message(
    spec: OpSpec,
    candidate: Candidate,
    measured: EvalResult | None = None,
    *,
    edits: bool = True,
    scope: Scope = Scope.OPERATOR,
) -> Message:
    """Return the system message of every prompt: the craft, the target, calls, and how to answer.

    Args:
        spec: the operator.
        candidate: the sources at hand, which decide with the operator's words what calls are shown.
        measured: any result of the chip at hand, which tells what is known of that.
        edits: whether the answer is to be changes of files.
        scope: what the answer may write.
    """
    target = measured.device.target if measured is not None and measured.device else None
    answer = render("answer_files") if edits else ""
    parts = (render("system"), sheets(spec, candidate, target, scope), answer)
    return Message("system", "\n".join(part for part in parts if part))


def task_fields(spec: OpSpec, measured: EvalResult) -> dict[str, str]:
    """Return what a task says it is about: an operator to make faster, or one without sources to write.

    Args:
        spec: the operator.
        measured: the version at hand.
    """
    named = f"the operator `{spec.op_type}` ({spec.op_id}, category {spec.category})"
    if spec.has_sources or measured.candidate_digest != spec.baseline.digest:
        present = f"The present implementation, measured on {chip_of(measured)}"
        return {"aim": f"Make {named} faster: {spec.description}", "present": present}
    present = "Its sources are a frame to be filled in, which computes nothing yet"
    return {"aim": f"Write {named}, and make it fast: {spec.description}", "present": present}


def yardstick(spec: OpSpec) -> str:
    """Return what speedups of an operator are over, as the beginning of a sentence."""
    return "The operator's own sources take" if spec.has_sources else "The framework's calls for it take some"


def cases_text(spec: OpSpec) -> str:
    """Return a line for each case, and what agreement with the reference their outputs need."""
    lines = [describe_case(case) for case in spec.cases]
    bounds = {
        (tensor.dtype, case.tolerance.get(tensor.dtype))
        for case in spec.cases
        for tensor in case.outputs
        if not tensor.open
    }
    ordered = sorted(bounds, key=lambda bound: (bound[0].value, str(bound[1])))
    return "\n".join([*lines, *(_describe_tolerance(dtype, tolerance) for dtype, tolerance in ordered)])


def chip_of(result: EvalResult) -> str:
    """Return the name of the chip that measured ``result``."""
    return result.device.chip if result.device else "the device"


def best_of_n_messages(
    spec: OpSpec, baseline: EvalResult, example: str = "", *, fold: bool = False
) -> list[Message]:
    """Return the prompt of Best-of-N: the complete operator, its cases and how its own sources did.

    Args:
        spec: the operator.
        baseline: how its own sources did.
        example: what is shown of another operator, after all else.
        fold: whether licence headers are left out.
    """
    user = render(
        "best_of_n",
        **case_fields(spec),
        **task_fields(spec, baseline),
        measurement=describe_result(baseline),
        sources=render_sources(spec.baseline, fold=fold),
    )
    return [system_message(spec, spec.baseline, baseline), Message("user", f"{user}{example}")]


def render_sources(candidate: Candidate, *, fold: bool = False) -> str:
    """Return every source file as a fenced block under its path; with ``fold`` without licence headers."""
    texts = {path: folded(text) if fold else text for path, text in candidate.texts.items()}
    return "\n".join(render_file(path, text) for path, text in texts.items())


def folded(text: str) -> str:
    """Return a source without the licence header that it begins with, and with a line in its place.

    Edits match what is shown, so that they apply to the whole file all the same.
    """
    header = _HEADER.match(text)
    if header is None or not _LICENCE.search(header[0]):
        return text
    lines = header[0].count("\n")
    return f"// lines 1 to {lines}: licence, left out\n{text[header.end() :]}"


def own_files(sources: Sources, others: Sources) -> str:
    """Return the paths of one side of an operator, without those that the other side has, too."""
    known = {file.path for file in others.files}
    return ", ".join(f"`{file.path}`" for file in sources.files if file.path not in known)


def describe_case(case: Case) -> str:
    """Return one line with the shapes, dtypes and attributes of a case."""
    inputs = ", ".join(_describe_tensor(tensor) for tensor in case.inputs)
    outputs = ", ".join(_describe_tensor(tensor) for tensor in case.outputs)
    attributes = ", ".join(f"{name}={value}" for name, value in sorted(case.attributes.items()))
    return f"- {case.case_id}: ({inputs}) -> ({outputs})" + (f" with {attributes}" if attributes else "")


def _describe_tolerance(dtype: DType, tolerance: Tolerance | None) -> str:
    if tolerance is None or (tolerance.atol == 0 and tolerance.rtol == 0):
        return f"- {dtype.value} outputs must equal the reference"
    terms = ((tolerance.atol, ""), (tolerance.rtol, " * |reference|"))
    most = " + ".join(f"{bound:g}{of}" for bound, of in terms if bound)
    bound = f"|output - reference| <= {most}"
    bad = f"{tolerance.max_bad_share:.2g} of the elements may exceed that, none tenfold"
    return f"- {dtype.value} outputs: {bound}; {bad if tolerance.max_bad_share else 'for every element'}"


def _describe_tensor(tensor: TensorSpec) -> str:
    shapes = " ".join("x".join(map(str, shape)) or "scalar" for shape in tensor.shapes)
    listed = f"list of {len(tensor.shapes)}: {shapes}" if tensor.dynamic else shapes
    return f"{tensor.name} {tensor.dtype.value} {'absent' if tensor.optional_absent else listed}"
