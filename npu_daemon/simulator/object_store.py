"""Compiled parts of the simulator, kept by the digest of everything that goes into them.

A part is compiled again only when its source, a header that it includes, the command or the compiler
changed, so that an edit of one file costs the compilation of what depends on it.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import InfrastructureError

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_INCLUDE_OPTION = "-I"


@dataclass
class ObjectStore:
    """Compiles with ``g++`` into a folder that several processes may share.

    Attributes:
        folder: holds the compiled parts; made when the first one is.
    """

    folder: Path
    _texts: dict[Path, bytes] = field(default_factory=dict)

    def compile(self, options: Sequence[str], source: Path, target: Path) -> None:
        """Compile ``source`` into the file ``target``, which must not exist.

        Args:
            options: everything of the compiler call but source and output. Headers are searched in the
                folders of its ``-I`` options; those found nowhere belong to the compiler.

        Raises:
            InfrastructureError: there is no compiler, or it refuses the source.
        """
        folders = [
            Path(option.removeprefix(_INCLUDE_OPTION)) for option in options if option.startswith("-I")
        ]
        files = self._closure(source, folders)
        content = [(str(file), self._texts[file]) for file in files]
        part = self.folder / digest_of("object", compiler_version(), list(options), content)
        if not part.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.folder, prefix="compiling-") as scratch:
                output = Path(scratch) / target.name
                call_tool(["g++", *options, str(source), "-o", str(output)])
                output.replace(part)
        os.link(part, target)

    def _closure(self, source: Path, folders: Sequence[Path]) -> list[Path]:
        """Return ``source`` and every header that it includes, directly or not, in the order of first use."""
        found = [source]
        for file in found:
            if file not in self._texts:
                self._texts[file] = file.read_bytes()
            for name in _INCLUDE.findall(self._texts[file]):
                places = (folder / name.decode() for folder in (file.parent, *folders))
                header = next((place for place in places if place.is_file()), None)
                if header is not None and header not in found:
                    found.append(header)
        return found


@cache
def compiler_version() -> str:
    """Return what ``g++`` calls itself."""
    return call_tool(["g++", "--version"]).splitlines()[0]


def call_tool(command: Sequence[str]) -> str:
    """Run a tool of the compiler's family on the simulator's own sources and return what it printed.

    Raises:
        InfrastructureError: the tool is missing or fails.
    """
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except OSError as error:
        raise InfrastructureError(
            f"the simulator needs {command[0]}, which could not be started: {error}; install g++ 12 or newer "
            "and binutils"
        ) from error
    except subprocess.CalledProcessError as error:
        raise InfrastructureError(f"building the simulator failed:\n{error.stderr[-4000:]}") from error
