"""Child interpreters that import the same installation as this process, from any working directory.

Other distributions use the top-level names ``agents`` and ``baselines`` as well. Ours are namespace packages
without files at that level, so installing both overwrites nothing, and Python finds our modules in the common
folder. If our folder is elsewhere, as in a clone or an editable install, another package of that name hides
it; ``find_in_own_folders`` makes it importable again.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType

DISTRIBUTION = "ascend-gym"
SHARED_NAMES = ("agents", "baselines")
_ROOT = Path(__file__).resolve().parents[2]


class _OwnModules:
    """Finder for modules directly in one of our folders, whichever package owns the folder's name."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of ours; ``None`` for any other."""
        parent = fullname.rpartition(".")[0]
        return PathFinder.find_spec(fullname, [str(_ROOT / parent)]) if parent in SHARED_NAMES else None


def find_in_own_folders() -> None:
    """Make our modules below the shared names importable in this process, whichever package owns the name."""
    if _OwnModules not in sys.meta_path:
        sys.meta_path.insert(0, _OwnModules)


def strangers(name: str) -> list[str]:
    """Return the other distributions that install anything under a top-level name."""
    return sorted(set(_distributions(tuple(sys.path)).get(name, [])) - {DISTRIBUTION})


@cache
def _distributions(import_path: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
    """Return the distributions on the import path by top-level name; reading them takes long."""
    return packages_distributions()


def is_hidden(name: str) -> bool:
    """Return whether another package hides our folder of that name from plain imports."""
    spec = PathFinder.find_spec(name)
    places = (spec.submodule_search_locations if spec is not None else None) or []
    return str(_ROOT / name) not in {str(Path(place).resolve()) for place in places}


def own_python_command(module: str) -> list[str]:
    """Return the command that calls ``main()`` of ``module`` in a new interpreter; append its arguments.

    The child imports from the same folders as this process. Unlike with ``python -m module``, the working
    directory is not among them, unless it was named in ``PYTHONPATH`` or contains the running script.
    """
    steps = (
        f"import sys; sys.path[:] = {_import_folders()!r}",
        f"from {__name__} import find_in_own_folders; find_in_own_folders()",
        f"from {module} import main; main()",
    )
    return [sys.executable, "-c", "; ".join(steps)]


def _import_folders() -> list[str]:
    """Return the import path with our packages and without ``""``, the working directory."""
    folders = [folder for folder in sys.path if isinstance(folder, str) and folder]
    known = any(Path(folder).resolve() == _ROOT for folder in folders)
    return folders if known else [str(_ROOT), *folders]
