"""Entry of the ``ascend-gym`` command: Ctrl-C ends it quietly, even while its packages are imported.

It is a package of its own because importing any part of ``ascend_gym`` imports NumPy and gymnasium first.
"""

from __future__ import annotations

_EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        from ascend_gym.cli import main as run_command

        run_command()
    except KeyboardInterrupt:
        raise SystemExit(_EXIT_INTERRUPTED) from None
