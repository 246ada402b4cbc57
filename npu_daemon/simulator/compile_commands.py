"""``python -m npu_daemon.simulator.compile_commands [FOLDER]``: how editors compile the simulator's sources.

It writes ``compile_commands.json`` for clangd and for editors that read the same format, into the folder
that is given or else the present one. Nothing has to be built before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from npu_daemon.simulator.compiler import host_options
from npu_daemon.simulator.object_store import Part
from npu_daemon.simulator.own_sources import INCLUDE
from npu_daemon.simulator.toolchain import simulator_parts

FILE_NAME = "compile_commands.json"
_KERNEL_HEADER = INCLUDE / "asim_kernel.h"
_DRIVER = "clang++"


def compile_commands(folder: Path) -> list[dict[str, object]]:
    """Return one entry for each source of the simulator, and one for the header that kernels are read with.

    Args:
        folder: directory of every entry; no path in it is relative.
    """
    parts = simulator_parts(folder)
    headers = Part(parts[-1].options, _KERNEL_HEADER, folder / "asim_kernel.o")
    return [_entry(folder, part) for part in (*parts, headers)]


def _entry(folder: Path, part: Part) -> dict[str, object]:
    prefix = ["-include", str(part.prefix)] if part.prefix is not None else []
    language = ["-x", "c++"] if part.source.suffix == ".h" else []
    options = [*host_options(), *part.options, *part.code_options, *prefix, *language]
    arguments = [_DRIVER, *options, str(part.source), "-o", str(part.target)]
    return {"directory": str(folder), "file": str(part.source), "arguments": arguments}


def main(arguments: Sequence[str]) -> None:
    """Write the file, and say where it is and how many sources it lists."""
    folder = Path(arguments[0] if arguments else ".").resolve()
    entries = compile_commands(folder)
    target = folder / FILE_NAME
    target.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    print(f"{target}: {len(entries)} sources")


if __name__ == "__main__":
    main(sys.argv[1:])
