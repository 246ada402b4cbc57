"""Python programs whose modules are loaded once and shared by all runs."""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from npu_daemon.sandbox.confinement import Reach

_RUN = "import json, sys; {paths}; from {module} import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True)
class Preload:
    """A module with a function ``main``, which takes the arguments and returns the exit status.

    Attributes:
        module: name of the module. Its imports are trusted like this process.
        paths: import folders for it and its packages, besides those of the standard library.
    """

    module: str
    paths: tuple[Path, ...]

    def as_argument(self) -> str:
        """Return the description for the process server."""
        return json.dumps({"module": self.module, "paths": [str(path) for path in self.paths]})

    def as_command(self, arguments: Sequence[str]) -> list[str]:
        """Return the command that does the same in a new interpreter."""
        paths = f"sys.path[:0] = json.loads({json.dumps(json.dumps([str(path) for path in self.paths]))})"
        script = _RUN.format(paths=paths, module=self.module)
        return [sys.executable, "-I", "-S", "-c", script, *arguments]

    def widened(self, reach: Reach) -> Reach:
        """Return the reach with the files that a new interpreter needs in addition."""
        return Reach((*reach.readable, *python_files(), *self.paths), keeps_files=reach.keeps_files)


def python_files() -> list[Path]:
    """Return the files that a new interpreter reads besides the system's libraries."""
    names = ("stdlib", "platstdlib")
    folders = [sysconfig.get_path(name) for name in names]
    return [
        Path(sys.prefix, "pyvenv.cfg"),
        *(Path(each) for each in (*folders, sysconfig.get_config_var("LIBDIR")) if each),
    ]
