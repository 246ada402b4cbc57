"""What the offline model reads out of a prompt."""

from __future__ import annotations

from ascend_gym.core.records import Candidate, SourceFile, Sources
from ascend_gym.rewrites.fenced import sections

_HOST, _KERNEL = "op_host", "op_kernel"


def candidate_in(prompt: str) -> Candidate | None:
    """Read the operator out of a prompt's fenced files; ``None`` unless both sides are there.

    Files that several operators share, such as those of the ``foreach`` family, lie in folders of their own:
    those below a folder ``op_kernel`` belong to the kernel, others to the host.
    """
    files = [
        SourceFile(path=section.path, text=section.body)
        for section in sections(prompt)
        if section.path and section.closed and not section.has_edits
    ]
    kernel = tuple(file for file in files if _KERNEL in file.path.split("/")[:-1])
    host = tuple(file for file in files if file not in kernel)
    if len({file.path for file in files}) != len(files):
        return None
    mains = [_main(side, name) for side, name in ((host, _HOST), (kernel, _KERNEL))]
    if None in mains:
        return None
    host_main, kernel_main = (str(main) for main in mains)
    return Candidate(host=Sources(files=host, main=host_main), kernel=Sources(files=kernel, main=kernel_main))


def _main(files: tuple[SourceFile, ...], folder: str) -> str | None:
    """Return the first file of the operator's own folder."""
    return next((file.path for file in files if file.path.startswith(f"{folder}/")), None)
