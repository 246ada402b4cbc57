"""What the offline model reads out of a prompt."""

from __future__ import annotations

from ascend_gym.core.records import Candidate, SourceFile, Sources
from ascend_gym.rewrites.fenced import sections


def candidate_in(prompt: str) -> Candidate | None:
    """Read the operator out of a prompt's fenced files; ``None`` unless both sides are there."""
    files = [
        SourceFile(path=section.path, text=section.body)
        for section in sections(prompt)
        if section.path and section.closed and not section.has_edits
    ]
    host = tuple(file for file in files if file.path.startswith("op_host/"))
    kernel = tuple(file for file in files if file.path.startswith("op_kernel/"))
    if not host or not kernel or len({file.path for file in files}) != len(files):
        return None
    return Candidate(
        host=Sources(files=host, main=host[0].path), kernel=Sources(files=kernel, main=kernel[0].path)
    )
