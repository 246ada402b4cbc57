"""Operators around the host side of ``races/probe``: x + 1 on four blocks, by a kernel that a case names."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

CORPUS = Path(__file__).parent / "races"
MODES = ("on", "off")
_SHARED = CORPUS / "probe"
_MANIFEST = """
[operator]
type = "Probe"
level = 1
category = "hostile"
description = "x + 1, by kernels of which half are faulty"
auto_sync = {auto_sync}
tiling = "op_host/probe.cpp"
kernel = "op_kernel/probe.cpp"

[tolerance.float32]
atol = 1e-5
rtol = 1e-5
max_bad_share = 0.0
"""
_CASE = """
[[case]]
id = "{name}"
attributes = {{ kernel = {key} }}
[[case.input]]
name = "x"
dtype = "float32"
shape = [4096]
values = {{ kind = "normal", low = 0.0, high = 1.0 }}
[[case.output]]
name = "y"
dtype = "float32"
shape = [4096]
"""


def write_operator(
    folder: Path, sources: Mapping[str, str], cases: Sequence[tuple[str, int]], auto_sync: str
) -> Path:
    """Write an operator and return its folder.

    Args:
        folder: does not exist yet; its name is ``probe``.
        sources: kernel files by name, of which ``probe.cpp`` has the entry.
        cases: identifiers and tiling keys.
        auto_sync: ``on`` or ``off``.
    """
    shutil.copytree(_SHARED, folder)
    for name, text in sources.items():
        (folder / "op_kernel" / name).write_text(text, encoding="utf-8")
    manifest = _MANIFEST.format(auto_sync="true" if auto_sync == "on" else "false")
    listed = "".join(_CASE.format(name=name, key=key) for name, key in cases)
    (folder / "op.toml").write_text(manifest + listed, encoding="utf-8")
    return folder
