"""Fields of tiling data that the kernel reads and no tiling program sets, as an explanation of a failure."""

from __future__ import annotations

import re

from ascend_gym.core.cpp_text import code_only
from ascend_gym.core.records import Candidate, Diagnostic, Phase, Sources
from npu_daemon.simulator.host_schema import TilingField
from npu_daemon.simulator.host_side import TilingOutcome


def unset_fields(tiling: TilingOutcome, candidate: Candidate) -> tuple[Diagnostic, ...]:
    """Name the fields that are zero, that no host code mentions a setter of, and that the kernel mentions.

    Args:
        tiling: what the tiling program decided; nothing is known of structures that it did not register.
        candidate: its sources, and those of the kernel.
    """
    if tiling.schema is None:
        return ()
    host, kernel = _code_of(candidate.host), _code_of(candidate.kernel)
    fields = [
        field.name
        for field in tiling.schema.fields
        if field.structure is None
        and not any(_bytes_of(field, tiling.tiling_data))
        and re.search(rf"\b{field.name}\b", kernel)
        and not re.search(rf"\b[sg]et_{field.name}\b", host)
    ]
    if not fields:
        return ()
    setters = _listed([f"set_{name}(...)" for name in fields])
    said = (
        f"the tiling program never sets {_listed(fields)} of {tiling.schema.name}, and the kernel reads 0: "
        f"call {setters} before SaveToBuffer"
    )
    return (Diagnostic(phase=Phase.RUN_TILING, message=said),)


def _code_of(sources: Sources) -> str:
    return "\n".join(code_only(file.text) for file in sources.files)


def _bytes_of(field: TilingField, data: bytes) -> bytes:
    return data[field.offset : field.offset + field.bytes]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if names[1:] else "") + names[-1]
