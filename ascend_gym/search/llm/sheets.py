"""What prompts say of the target: facts about the chip, and calls that an operator is likely to need."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from enum import Enum

from ascend_gym.core.calls import KnownCall, known_calls
from ascend_gym.core.records import Candidate, CubeCost, OpSpec, TargetSheet
from ascend_gym.search.llm.template import render

TARGET_HEADING = "## Target"
CALLS_HEADING = "## Calls"

_MAX_CALLS = 24
_EMPTY_L2 = (
    " A measurement begins with an empty L2: what is read for the first time comes from HBM, what was read "
    "or written before from L2."
)
_SCRATCH = (
    " Those of the library work in sharedTmpBuffer, a uint8_t tensor whose contents are lost, on as much "
    "at a time as it has room for. Get<Call>MaxMinTmpSize (GetSoftMaxMaxTmpSize, GetSoftMaxMinTmpSize) of "
    "tiling/tiling_api.h tell the host the bytes for all at once and the fewest that serve. Without this "
    "argument a call works in what of UB no buffer has."
)
_ALWAYS = "always"
_FLOATS_PER_REPEAT = 64
_CALLED = {"Cast64": "Cast from or to 64 bits"}
_WORD = re.compile(r"[a-z]+")
_IDENTIFIER = re.compile(r"\b[A-Z]\w+(?=\s*[(<])")
_CUBE = re.compile(r"\b(?:Matmul\w*|Mmad|Fixpipe|LoadData)\b")
_SHEETS = re.compile(
    rf"^(?:{TARGET_HEADING}|{CALLS_HEADING})\n.*?(?=^# |^## (?!Target\n|Calls\n)|\Z)", re.M | re.S
)


class Scope(Enum):
    """What an answer may write, which decides what it needs to be told."""

    OPERATOR = "kernel and tiling program"
    TILING = "tiling program, for the kernel as it is"
    MARKS = "comments alone"


def calls_for(spec: OpSpec, candidate: Candidate, scope: Scope = Scope.OPERATOR) -> list[KnownCall]:
    """Return the calls that an operator is likely to need: those that fit its words and its kernel best.

    Where the kernel stays as it is, these are calls that it makes.
    """
    about = f"{spec.category} {spec.description} {spec.name} {spec.op_type}".lower()
    dtypes = {tensor.dtype.value for case in spec.cases for tensor in (*case.inputs, *case.outputs)}
    words = {*_WORD.findall(about), *_WORD.findall(" ".join(dtypes))}
    made = set(_IDENTIFIER.findall("\n".join(file.text for file in candidate.kernel.files)))
    served = [
        call for call in known_calls() if scope is Scope.OPERATOR or made & {*call.names, call.declared}
    ]
    ranked = [(_fit(call, words, made), -place, call) for place, call in enumerate(served)]
    fitting = sorted((each for each in ranked if each[0] > 0), key=lambda each: each[:2], reverse=True)
    chosen = {call.name for _, _, call in fitting[:_MAX_CALLS]}
    return [call for call in known_calls() if call.name in chosen]


def sheets(
    spec: OpSpec, candidate: Candidate, target: TargetSheet | None, scope: Scope = Scope.OPERATOR
) -> str:
    """Return the target sheet, where the target is known, and the sheet of calls."""
    if scope is Scope.MARKS:
        return ""
    has_cube = any(_CUBE.search(file.text) for file in candidate.kernel.files)
    about_target = _target_text(target, cube=has_cube) if target else "- Nothing is known of the chip.\n"
    synchronisation = render(f"synchronisation_{'on' if spec.auto_sync else 'off'}")
    shown = calls_for(spec, candidate, scope)
    which = "that may serve here; others exist" if scope is Scope.OPERATOR else "that the kernel makes"
    scratch = _SCRATCH if any(call.needs_scratch for call in shown) else ""
    calls = "\n".join(map(_call_line, shown))
    return (
        f"{TARGET_HEADING}\n\n{about_target}{synchronisation}\n"
        f"{CALLS_HEADING}\n\nCalls in namespace AscendC {which}.{scratch}\n\n{calls}\n"
    )


def without_sheets(prompt: str) -> str:
    """Return a prompt without these sections, for readers who have no use for them."""
    return _SHEETS.sub("", prompt)


def _fit(call: KnownCall, words: set[str], made: set[str]) -> int:
    """Return how many topics of a call fit; what kernels always need comes first."""
    if _ALWAYS in call.topics:
        return len(call.topics) + 100
    named = len(made & {*call.topics, *call.names})
    return named + sum(any(word.startswith(topic) for word in words) for topic in call.topics)


def _call_line(call: KnownCall) -> str:
    types = f"Types: {', '.join(call.types)}." if call.types else ""
    told = (f"- {call.name}: `{'`, `'.join(call.forms)}`.", call.about, types)
    return " ".join(filter(None, told))


def _target_text(target: TargetSheet, *, cube: bool) -> str:
    text = render("target", **_target_fields(target), **_copy_fields(target), **_scalar_fields(target))
    return text + render("target_cube", **_cube_fields(target, target.cube)) if cube else text


def _target_fields(target: TargetSheet) -> dict[str, str]:
    return {
        "chip": target.chip,
        "aiv_cores": str(target.aiv_cores),
        "aic_cores": str(target.aic_cores),
        "clock_mhz": f"{target.clock_mhz:.0f}",
        "launches": _launches(target),
        "ub_bytes": str(target.ub_bytes),
        "ub": _size(target.ub_bytes),
        "ub_reported": str(target.ub_bytes - target.ub_reserved_bytes),
        "event_ids": str(target.event_ids),
        "queue_depth": f", which holds {target.queue_depth} instructions" if target.queue_depth else "",
        "l2": _size(target.l2_bytes),
        "vector_start": f"{target.vector_start_cycles:.3g}",
        "function_start": f"{target.function_start_cycles:.3g}",
        "vector_issue": f"{target.vector_issue_cycles:.3g}",
        "vector_rates": "\n".join(_vector_rates(target)),
        "start_elems": f"{target.vector_start_cycles * _FLOATS_PER_REPEAT:.0f}",
    }


def _vector_rates(target: TargetSheet) -> Iterator[str]:
    """Yield a line for each class of instructions, that of most of them last and by some of their names."""
    by_size = sorted(target.vector_rates, key=lambda rate: len(rate.instructions))
    for rate in by_size:
        calls = [_CALLED.get(name, name) for name in rate.instructions]
        names = ", ".join(calls) if rate is not by_size[-1] else "all others, copies within UB among them"
        yield f"  - {rate.elems_16bit:.3g} | {rate.elems_32bit:.3g}: {names}"


def _launches(target: TargetSheet, kind: str = "vector_us") -> str:
    """Return what empty launches take on cores of a kind, by number of blocks."""
    known = [(each.blocks, getattr(each, kind)) for each in target.launches]
    return ", ".join(f"{us:.1f} us with {blocks}" for blocks, us in known if us is not None)


def _copy_fields(target: TargetSheet) -> dict[str, str]:
    copies = target.copies
    cycles_of_all = target.clock_mhz * 1e-3 * target.aiv_cores  # per nanosecond
    buffer = int(copies.write_buffer_bytes)
    return {
        "hbm": f"{copies.hbm_gb_per_s:.0f}",
        "l2_rate": f"{copies.l2_gb_per_s:.0f}",
        "core_hbm": f"{copies.core_hbm_bytes_per_cycle:.0f}",
        "core_l2": f"{copies.core_l2_bytes_per_cycle:.0f}",
        "core_write": f"{copies.core_write_bytes_per_cycle:.0f}",
        "share_hbm": f"{copies.hbm_gb_per_s / cycles_of_all:.0f}",
        "share_l2": f"{copies.l2_gb_per_s / cycles_of_all:.0f}",
        "hbm_by_cores": _hbm_by_cores(target),
        "write_least": f"{100 * (1 - copies.write_yield):.0f}",
        "write_buffer": f", apart from {_size(buffer)} a core that a buffer holds" if buffer else "",
        "copy_start": f"{copies.start_cycles:.3g}",
        "burst": f"{copies.burst_cycles:.3g}",
        "odd_row": f"{copies.odd_row_cycles:.3g}",
        "off_grid": f"{100 * (copies.off_grid_factor - 1):.0f}",
        "read_latency": f"{copies.read_latency_cycles:.0f}",
        "l2_latency": f"{copies.l2_latency_cycles:.0f}",
        "write_latency": f"{copies.write_latency_cycles:.0f}",
        "line": str(copies.line_bytes),
        "caches": _EMPTY_L2 if target.starts_with_empty_l2 else "",
    }


def _hbm_by_cores(target: TargetSheet) -> str:
    """Return what HBM gives in all to some numbers of cores that read without a pause.

    Each core's requests wait for those of the others: one core gets its own maximum, all cores get the rate
    of HBM (``compute_shared_rates`` and ``Memory::hbm_speed`` of the pricing program).
    """
    copies = target.copies
    of_core = copies.core_hbm_bytes_per_cycle * target.clock_mhz * 1e-3
    with_all = min(1.0, copies.hbm_gb_per_s / (target.aiv_cores * of_core))
    not_waited = (1 - (1 - with_all) / copies.hbm_reached_share) / with_all
    peak = copies.hbm_gb_per_s / copies.hbm_reached_share

    def rate_gb_per_s(cores: int) -> float:
        load = cores * of_core / peak
        return 2 * cores * of_core / (1 + load + math.sqrt((1 + load) ** 2 - 4 * load * not_waited))

    some = [each.blocks for each in target.launches if 1 < each.blocks < target.aiv_cores]
    return ", ".join(f"{cores} cores {rate_gb_per_s(cores):.0f}" for cores in some)


def _scalar_fields(target: TargetSheet) -> dict[str, str]:
    scalar = target.scalar
    first_time = scalar.fetch_cycles + target.aiv_cores * scalar.fetch_turn_cycles
    return {
        "scalar_access": f"{scalar.access_cycles:.3g}",
        "scalar_next_access": f"{scalar.next_access_cycles:.3g}",
        "scalar_store": f"{scalar.store_cycles:.3g}",
        "data_cache": f" of {_size(scalar.data_cache_bytes)}" if scalar.data_cache_bytes else "",
        "global_access": f"{scalar.global_access_cycles:.3g}",
        "scalar_miss": f"{scalar.global_miss_cycles:.0f}",
        "scalar_stream": f"{scalar.global_stream_cycles:.0f}",
        "scalar_instruction": f"{scalar.instruction_cycles:.2g}",
        "scalar_float": f"{scalar.float_cycles:.2g}",
        "scalar_convert": f"{scalar.convert_cycles:.2g}",
        "scalar_float_divide": f"{scalar.float_divide_cycles:.2g}",
        "scalar_queue": f"{scalar.queue_cycles:.0f}",
        "code_fetch": f"{scalar.fetch_cycles:.3g}",
        "code_fetch_turn": f"{scalar.fetch_turn_cycles:.3g}",
        "first_time": f"{first_time:.0f}",
        "hundred_us": f"{100 * first_time / target.clock_mhz:.1f}",
        "flag": f"{scalar.flag_cycles:.3g}",
        "vector_barrier": f"{scalar.vector_barrier_cycles:.3g}",
        "barrier": f"{scalar.barrier_cycles:.0f}",
        "sync_all": f"{scalar.sync_all_cycles:.0f}",
    }


def _cube_fields(target: TargetSheet, cube: CubeCost) -> dict[str, str]:
    return {
        "l1": _size(target.l1_bytes),
        "l0a": _size(target.l0a_bytes),
        "l0b": _size(target.l0b_bytes),
        "l0c": _size(target.l0c_bytes),
        "mmad_start": f"{cube.start_cycles:.0f}",
        "depth_8bit": f"{cube.depth_8bit:.0f}",
        "depth_16bit": f"{cube.depth_16bit:.0f}",
        "depth_32bit": f"{cube.depth_32bit:.0f}",
        "l1_l0a": f"{cube.l1_l0a_bytes_per_cycle:.0f}",
        "l1_l0b": f"{cube.l1_l0b_bytes_per_cycle:.0f}",
        "l0_start": f"{cube.l0_start_cycles:.3g}",
        "l0c_gm": f"{cube.l0c_gm_bytes_per_cycle:.0f}",
        "gm_write": f"{cube.gm_write_bytes_per_cycle or cube.l0c_gm_bytes_per_cycle:.0f}",
        "cube_launches": _launches(target, "cube_us"),
        "mixed_launches": _launches(target, "mixed_us"),
        "cube_hbm": f"{cube.core_hbm_bytes_per_cycle:.0f}",
        "cube_l2": f"{cube.core_l2_bytes_per_cycle:.0f}",
        "row": f"{cube.row_cycles:.3g}",
    }


def _size(size_bytes: int) -> str:
    return f"{size_bytes // 2**20} MB" if size_bytes >= 2**20 else f"{size_bytes // 2**10} KB"
