"""The top-level names ``agents`` and ``baselines``, which other distributions install packages under as well.

Ours have no file at that level that another package could have too: an installation beside one overwrites
nothing, and Python finds our modules in the folder that both share. Where our folder is another one, as in a
clone or after ``pip install -e``, a package of that name hides it; ``find_in_own_folders`` finds it then.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType

DISTRIBUTION = "ascend-gym"
SHARED_NAMES = ("agents", "baselines")
_ROOT = Path(__file__).resolve().parents[2]


class _OwnModules:
    """Finds what lies directly in one of our folders, whatever has the folder's name."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module of ours lies; ``None`` for any other."""
        parent = fullname.rpartition(".")[0]
        return PathFinder.find_spec(fullname, [str(_ROOT / parent)]) if parent in SHARED_NAMES else None


def find_in_own_folders() -> None:
    """Have this process find our modules below the shared names, whichever package has the name."""
    if _OwnModules not in sys.meta_path:
        sys.meta_path.insert(0, _OwnModules)


def strangers(name: str) -> list[str]:
    """Return the other distributions that install something under a top-level name."""
    return sorted(set(packages_distributions().get(name, [])) - {DISTRIBUTION})


def is_hidden(name: str) -> bool:
    """Say whether a package of that name hides our folder from plain imports."""
    spec = PathFinder.find_spec(name)
    places = (spec.submodule_search_locations if spec is not None else None) or []
    return str(_ROOT / name) not in {str(Path(place).resolve()) for place in places}
