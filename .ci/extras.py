"""Print what extras of ascend-gym need, one requirement a line: ``python extras.py EXTRA...``."""

from __future__ import annotations

import sys
from importlib.metadata import requires

from packaging.requirements import Requirement


def main() -> None:
    """Print the requirements of the extras that are named, without those of the package itself."""
    for requirement in map(Requirement, requires("ascend-gym") or ()):
        marker = requirement.marker
        if marker is None or marker.evaluate({"extra": ""}):
            continue
        if any(marker.evaluate({"extra": extra}) for extra in sys.argv[1:]):
            requirement.marker = None
            print(requirement)


if __name__ == "__main__":
    main()
