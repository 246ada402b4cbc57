"""Tiling data that the kernel reads and the tiling program never sets or passes on, as an explanation."""

from __future__ import annotations

import re

from ascend_gym.core.cpp_text import code_only
from ascend_gym.core.records import Candidate, Diagnostic, Phase, Sources
from npu_daemon.simulator.host_schema import TilingField
from npu_daemon.simulator.host_side import TilingOutcome


def unset_fields(tiling: TilingOutcome, candidate: Candidate) -> tuple[Diagnostic, ...]:
    """Name the fields that are zero, that no host code mentions a setter of, and that the kernel mentions.

    Where no byte of the data is set though others have setters, it is said that the data are not passed on.

    Args:
        tiling: what the tiling program decided; nothing is known of structures that it did not register.
        candidate: its sources, and those of the kernel.
    """
    if tiling.schema is None:
        return ()
    host, kernel = _code_of(candidate.host), _code_of(candidate.kernel)
    read = [
        field.name
        for field in tiling.schema.fields
        if field.structure is None
        and not any(_bytes_of(field, tiling.tiling_data))
        and re.search(rf"\b{field.name}\b", kernel)
    ]
    never_set = [name for name in read if not re.search(rf"\b[sg]et_{name}\b", host)]
    found = []
    if never_set:
        setters = _listed([f"set_{name}(...)" for name in never_set])
        found.append(
            f"the tiling program never sets {_listed(never_set)} of {tiling.schema.name}, and the kernel "
            f"reads 0: call {setters} before SaveToBuffer"
        )
    if len(never_set) < len(read) and not any(tiling.tiling_data):
        found.append(_not_passed_on(tiling, [name for name in read if name not in never_set]))
    return tuple(Diagnostic(phase=Phase.RUN_TILING, message=message) for message in found)


def _not_passed_on(tiling: TilingOutcome, names: list[str]) -> str:
    size_bytes = len(tiling.tiling_data)
    reached = f"{size_bytes} bytes, all of them 0" if size_bytes else "none: SetDataSize was not called"
    return (
        f"the tiling program sets {_listed(names)}, but the tiling data that reach the kernel are {reached}: "
        "call tiling.SaveToBuffer(GetRawTilingData()->GetData(), ...->GetCapacity()) and "
        "GetRawTilingData()->SetDataSize(tiling.GetDataSize()) behind the last setter"
    )


def _code_of(sources: Sources) -> str:
    return "\n".join(code_only(file.text) for file in sources.files)


def _bytes_of(field: TilingField, data: bytes) -> bytes:
    return data[field.offset : field.offset + field.bytes]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if names[1:] else "") + names[-1]
