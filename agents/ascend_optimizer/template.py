"""Evolvable template synthesis (version 1, section 3.3 and Fig. 6).

Evolution markers are put around the code of T that decides how data are partitioned and moved.

The template must behave as T does. Where only comments and white space differ that is proven by comparison
and costs nothing; else it is evaluated, and must give the same launch and, within noise, the same latency in
every case.
A template that fails is replaced by one with markers around the body of the tiling function.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from agents.ascend_optimizer.incumbent import Incumbent, evaluate
from agents.ascend_optimizer.markers import has_blocks, same_code
from ascend_gym.core.protocols import Ending, Message, Proposal
from ascend_gym.core.records import Candidate, CaseResult, EvalResult, OpSpec
from ascend_gym.core.status import Status
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind, candidate_from_answer
from ascend_gym.rewrites.candidate_files import with_texts
from ascend_gym.rewrites.evolve_blocks import END, START
from ascend_gym.rewrites.syntax import Edit, parse, splice
from ascend_gym.search.llm.prompts import cases_text, own_files, render_sources, system_message
from ascend_gym.search.llm.sheets import Scope
from ascend_gym.search.llm.template import render
from ascend_gym.search.model_client import ModelClient

PACKAGE = "agents.ascend_optimizer"

_ALIKE = 0.005


def synthesize_template(
    spec: OpSpec, incumbent: Incumbent, model_client: ModelClient, untold: list[Mapping[str, Any]]
) -> Generator[Proposal, EvalResult, tuple[Incumbent, int]]:
    """Return the incumbent with T as the base template T_base, and the evaluations spent: at most one.

    Args:
        spec: the operator.
        incumbent: the pair whose T is marked.
        model_client: asks the model.
        untold: the notes of the calls are added here, unless a proposal carries them into the journal.

    Raises:
        ModelError: the model could not answer.
        BudgetExceededError: the budget does not cover the question.
    """
    reading = model_client.read(
        template_messages(spec, incumbent),
        lambda answer: template_from_answer(answer.text, incumbent.candidate, ending=answer.ending),
        "template",
    )
    template = reading.value
    if isinstance(template, ParseProblem):
        untold.extend(reading.calls)
        return Incumbent(whole_function_marked(incumbent.candidate), incumbent.result), 0
    if same_code(template, incumbent.candidate):
        untold.extend(reading.calls)
        return Incumbent(template, incumbent.result), 0
    origin: Mapping[str, Any] = {"kind": "template", "calls": [*reading.calls]}
    _, result = yield from evaluate(template, incumbent, origin, reading.text)
    if behaves_alike(result, incumbent.result):
        return Incumbent(template, result), 1
    return Incumbent(whole_function_marked(incumbent.candidate), incumbent.result), 1


def template_messages(spec: OpSpec, incumbent: Incumbent) -> list[Message]:
    """Return the prompt that asks for evolution markers in T."""
    user = render(
        "template",
        package=PACKAGE,
        op_type=spec.op_type,
        op_id=spec.op_id,
        cases=cases_text(spec),
        host_files=own_files(incumbent.candidate.host, incumbent.candidate.kernel),
        start=START,
        end=END,
        sources=render_sources(incumbent.candidate),
    )
    return [
        system_message(spec, incumbent.candidate, incumbent.result, scope=Scope.MARKS),
        Message("user", user),
    ]


def template_from_answer(
    answer: str, original: Candidate, *, ending: Ending = Ending.COMPLETE
) -> Candidate | ParseProblem:
    """Return the marked operator, or what is wrong with the answer."""
    template = candidate_from_answer(answer, original, ending=ending)
    if isinstance(template, ParseProblem):
        return template
    if template.kernel != original.kernel or not has_blocks(template):
        expected = f"expected the host files with pairs of {START!r} and {END!r}, and the kernel as it was"
        return ParseProblem(ProblemKind.FORBIDDEN_EDIT, expected)
    return template


def behaves_alike(result: EvalResult, original: EvalResult) -> bool:
    """Say whether a result shows the launch of ``original`` in every case, and its latency within noise."""
    if result.status is not Status.OK or len(result.cases) != len(original.cases):
        return False
    pairs = zip(result.cases, original.cases, strict=True)
    return all(
        (seen.case_id, seen.launch) == (expected.case_id, expected.launch) and _equally_fast(seen, expected)
        for seen, expected in pairs
    )


def _equally_fast(seen: CaseResult, expected: CaseResult) -> bool:
    """Say whether latencies differ by no more than half a percent and what samples of one case spread."""
    if seen.latency_us is None or expected.latency_us is None:
        return False
    spread_us = max(max(case.samples_us) - min(case.samples_us) for case in (seen, expected))
    return abs(seen.latency_us - expected.latency_us) <= _ALIKE * expected.latency_us + spread_us


def whole_function_marked(candidate: Candidate) -> Candidate:
    """Return ``candidate`` with markers around the body of the tiling function.

    That is each function of T that takes the tiling context; the whole main file where there is none.
    """
    texts = {file.path: _bodies_marked(file.text) for file in candidate.host.files}
    marked = with_texts(candidate, texts)
    if has_blocks(marked):
        return marked
    main = candidate.host.main
    return with_texts(candidate, {main: f"{START}\n{candidate.tiling_text.rstrip()}\n{END}\n"})


def _bodies_marked(text: str) -> str:
    source = parse(text)
    edits = []
    for function in source.nodes("function_definition"):
        declarator, body = function.child_by_field_name("declarator"), function.child_by_field_name("body")
        takes_context = declarator is not None and "TilingContext*" in source.bare(declarator)
        if takes_context and body is not None and body.type == "compound_statement":
            begin, end = body.start_byte + 1, body.end_byte - 1
            edits += [Edit(begin, begin, f"\n{START}\n"), Edit(end, end, f"\n{END}\n")]
    return splice(text, edits)
