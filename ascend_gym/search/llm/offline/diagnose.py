"""Diagnosing a bottleneck: what the profile's figures and the kernel's text say, in general terms."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.library import RULES
from ascend_gym.rewrites.rule import Side
from ascend_gym.search.llm.offline.picking import SeededChoice
from ascend_gym.search.llm.offline.reading import PromptEvidence, candidate_in, evidence_of

_NAMED_RULES = 4
_SHORT_COPIES = re.compile(r"\d+ bytes per (MTE[23]) instruction \(small\)")
_FEW_CORES = re.compile(r"block dim (\d+) of (\d+) vector cores")
_WAITING = re.compile(r"even the busiest pipe idles (\d+)%")

_PIPE_SYMPTOMS = {
    "vec": "aiv_vec_ratio is high: the vector pipe limits, with many or expensive vector instructions",
    "scalar": "aiv_scalar_ratio is high: the scalar pipe limits, with loop overhead and single elements",
    "mte2": "aiv_mte2_ratio is high: copies from GM to UB limit",
    "mte3": "aiv_mte3_ratio is high: copies from UB to GM limit",
}
_CODE_SYMPTOMS = (
    (r"PipeBarrier\s*<\s*PIPE_ALL\s*>", "full barriers (PipeBarrier PIPE_ALL) stop every pipe"),
    (
        r"PipeBarrier\s*<\s*PIPE_V\s*>",
        "vector barriers (PipeBarrier PIPE_V) stand between vector instructions",
    ),
    (
        r"(?:BUFFER|QUEUE)\w*NUM\w*\s*=\s*1\b|InitBuffer\(\s*\w+\s*,\s*1\s*,",
        "queues have a single buffer, so that copies and computing do not overlap",
    ),
    (r"\bDataCopyPad\b", "copies take the padded path (DataCopyPad) though they may be aligned"),
    (
        r"\b(?:GetValue|SetValue)\s*\(",
        "single elements are read or written by the scalar pipe (GetValue, SetValue)",
    ),
    (
        r"\bDuplicate\b",
        "a buffer is filled with one value (Duplicate) for a vector instruction with two operands",
    ),
    (r"\bCast\b", "data types are cast on the way"),
)
_CODE_TRAITS = (
    (r"\bTQue\b|\bTQue<", "tiles pass through queues of UB buffers"),
    (r"\bfor\s*\(|\bwhile\s*\(", "a loop over tiles"),
    (r"\bReduce(?:Sum|Max|Min)\b|WholeReduce|BlockReduce", "reductions"),
    (r"\bDataCopyPad\b", "padded copies"),
    (r"\bDataCopy\s*\(", "plain copies"),
    (r"\b(?:Add|Mul|Muls|Adds|Sub|Div|Exp)\b", "elementwise vector instructions"),
)


def answer(prompt: str, draws: SeededChoice) -> str:
    """Answer with bottleneck and applicability."""
    candidate = candidate_in(prompt)
    evidence = evidence_of(prompt)
    symptoms = [*_profile_symptoms(prompt, evidence)]
    traits = []
    if candidate is not None:
        code = "\n".join(file.text for file in candidate.kernel.files)
        symptoms += [text for pattern, text in _CODE_SYMPTOMS if re.search(pattern, code)]
        symptoms += [f"left to gain: {text}" for text in _openings(candidate, evidence)]
        traits = [text for pattern, text in _CODE_TRAITS if re.search(pattern, code)]
    bottleneck = "; ".join(symptoms) or "nothing stands out"
    return f"Bottleneck: {bottleneck}.\nApplicability: {'; '.join(traits) or 'unknown code'}."


def _profile_symptoms(prompt: str, evidence: PromptEvidence) -> Iterator[str]:
    ranked = sorted(evidence.pipe_ratios, key=lambda pipe: -evidence.pipe_ratios[pipe])
    busiest = [pipe for pipe in ranked if pipe in _PIPE_SYMPTOMS]
    if busiest:
        yield _PIPE_SYMPTOMS[busiest[0]]
    waiting = _WAITING.search(prompt)
    if waiting is not None:
        yield f"pipes wait for each other: even the busiest idles {waiting[1]} % of the time"
    short = {match[1] for match in _SHORT_COPIES.finditer(prompt)}
    if short:
        yield f"few bytes per copy on {' and '.join(sorted(short))}: short bursts of small tiles"
    few = _FEW_CORES.search(prompt)
    if few is not None and int(few[1]) < int(few[2]):
        yield "fewer blocks than cores: block_dim is below what the chip has"


def _openings(candidate: Candidate, evidence: PromptEvidence) -> Iterator[str]:
    """Yield what the most promising rules of the kernel would gain."""
    weights: dict[str, float] = {}
    for rule in RULES:
        sites = rule.sites(candidate) if rule.side is not Side.TILING else []
        if any(choice.forward for site in sites for choice in site.choices):
            weight = evidence.option_weight(rule, sites)
            weights[rule.effect.summary] = max(weight, weights.get(rule.effect.summary, 0.0))
    yield from sorted(weights, key=lambda summary: (-weights[summary], summary))[:_NAMED_RULES]
