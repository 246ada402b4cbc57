"""The importer as a separate program: ``FOLDER TARGET``; errors are printed on standard output.

Paths in them are relative to the folder, which the caller names.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.suite.domain_library import library_root
from ascend_gym.suite.imported import EXIT_FORMAT
from npu_daemon.importer.library import write_library_operator
from npu_daemon.importer.writing import write_example


def main() -> None:
    """Write the example of an operator folder, or one of a library, as a manifest into an empty folder."""
    folder, target = map(Path, sys.argv[1:3])
    try:
        root = library_root(folder)
        if root is None:
            write_example(folder, target)
        else:
            write_library_operator(folder, root, target)
    except OperatorFormatError as error:
        print(str(error).removeprefix(f"{folder}/").removeprefix(f"{folder}: "))
        sys.exit(EXIT_FORMAT)


if __name__ == "__main__":
    main()
