"""Prompts: Markdown templates beside this module, filled with what is known of an operator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Message
from ascend_gym.core.records import Candidate, Case, EvalResult, OpSpec, TensorSpec
from ascend_gym.rewrites.fenced import render_file

PROFILE_FIELDS = (
    "block_dim",
    "aiv_time",
    "aiv_vec_ratio",
    "aiv_scalar_ratio",
    "aiv_mte2_ratio",
    "aiv_mte3_ratio",
    "gm_to_ub_bytes",
    "ub_to_gm_bytes",
    "aiv_vec_instructions",
    "aiv_mte2_instructions",
    "aiv_mte3_instructions",
)

_MAX_DIAGNOSTICS = 8
_FIELD = re.compile(r"\$\{(\w+)\}")


def render(name: str, /, *, package: str = __package__, **values: str) -> str:
    """Return template ``name`` of a package's folder ``prompts`` with its ``${fields}`` filled.

    The values are not looked into.

    Raises:
        MisuseError: a field is missing, or a value has no field.
    """
    template = (files(package) / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    fields = set(_FIELD.findall(template))
    if fields != set(values):
        raise MisuseError(f"prompt {name!r} has the fields {sorted(fields)}, got {sorted(values)}")
    return _FIELD.sub(lambda match: values[match[1]], template)


def prompt_digest(messages: Sequence[Message]) -> str:
    """Return the identity of a prompt, for the journal."""
    return digest_of("prompt", [(message.role, message.content) for message in messages])


def operator_fields(spec: OpSpec) -> dict[str, str]:
    """Return the fields by which every prompt names an operator."""
    return {
        "op_type": spec.op_type,
        "op_id": spec.op_id,
        "auto_sync": "on" if spec.auto_sync else "off",
        "cases": "\n".join(describe_case(case) for case in spec.cases),
    }


def chip_of(result: EvalResult) -> str:
    """Return the name of the chip that measured ``result``."""
    return result.device.chip if result.device else "the device"


def best_of_n_messages(spec: OpSpec, baseline: EvalResult) -> list[Message]:
    """Return the prompt of Best-of-N: the complete operator, its cases and how its own sources did."""
    user = render(
        "best_of_n",
        **operator_fields(spec),
        category=spec.category,
        description=spec.description,
        chip=chip_of(baseline),
        measurement=describe_result(baseline),
        sources=render_sources(spec.baseline),
    )
    system = f"{render('system')}\n{render('answer_files')}"
    return [Message("system", system), Message("user", user)]


def render_sources(candidate: Candidate) -> str:
    """Return every source file as a fenced block under its path."""
    return "\n".join(render_file(path, text) for path, text in candidate.texts.items())


def describe_case(case: Case) -> str:
    """Return one line with the shapes, dtypes and attributes of a case."""
    inputs = ", ".join(_describe_tensor(tensor) for tensor in case.inputs)
    outputs = ", ".join(_describe_tensor(tensor) for tensor in case.outputs)
    attributes = ", ".join(f"{name}={value}" for name, value in sorted(case.attributes.items()))
    return f"- {case.case_id}: ({inputs}) -> ({outputs})" + (f" with {attributes}" if attributes else "")


def describe_result(result: EvalResult) -> str:
    """Return status, latencies, profile and diagnostics of an evaluation, a line for each fact."""
    lines = [f"status: {result.status.value}"]
    if result.latency_us is not None:
        lines.append(f"latency: {result.latency_us:.2f} us")
    for case in result.cases:
        if case.profile is not None and case.latency_us is not None:
            fields = case.profile.model_dump(include=set(PROFILE_FIELDS))
            shown = ", ".join(f"{name}={_short(fields[name])}" for name in PROFILE_FIELDS)
            lines.append(f"- {case.case_id}: {case.latency_us:.2f} us, {shown}")
    lines += [f"- {diagnostic}" for diagnostic in result.all_diagnostics[:_MAX_DIAGNOSTICS]]
    return "\n".join(lines)


def _describe_tensor(tensor: TensorSpec) -> str:
    shapes = " ".join("x".join(map(str, shape)) or "scalar" for shape in tensor.shapes)
    listed = f"list of {len(tensor.shapes)}: {shapes}" if tensor.dynamic else shapes
    return f"{tensor.name} {tensor.dtype.value} {'absent' if tensor.optional_absent else listed}"


def _short(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"
