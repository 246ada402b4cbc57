"""Programs in Python whose modules are loaded once, so that each run starts with them."""

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
    """A module with a function ``main``, which gets the arguments and returns the exit status.

    Attributes:
        module: its name. What it imports is trusted as this process is.
        paths: folders that it and its packages are imported from, besides those of the standard library.
    """

    module: str
    paths: tuple[Path, ...]

    def as_argument(self) -> str:
        """Return the description that the process server reads."""
        return json.dumps({"module": self.module, "paths": [str(path) for path in self.paths]})

    def as_command(self, arguments: Sequence[str]) -> list[str]:
        """Return the call that does the same in a new interpreter."""
        paths = f"sys.path[:0] = json.loads({json.dumps(json.dumps([str(path) for path in self.paths]))})"
        script = _RUN.format(paths=paths, module=self.module)
        return [sys.executable, "-I", "-S", "-c", script, *arguments]

    def widened(self, reach: Reach) -> Reach:
        """Return the reach that a new interpreter needs besides."""
        return Reach((*reach.readable, *python_files(), *self.paths), keeps_files=reach.keeps_files)


def python_files() -> list[Path]:
    """Return what a new interpreter of the kind that runs this reads, besides the system's libraries."""
    names = ("stdlib", "platstdlib")
    folders = [sysconfig.get_path(name) for name in names]
    return [
        Path(sys.prefix, "pyvenv.cfg"),
        *(Path(each) for each in (*folders, sysconfig.get_config_var("LIBDIR")) if each),
    ]
