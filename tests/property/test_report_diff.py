"""Diffs of candidates, checked with ``git apply``."""

import subprocess
import tempfile
from pathlib import Path

from conftest import make_candidate
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_gym.report.run_folder import unified_diff, write_candidate

_LINES = st.text(st.sampled_from("ab \t\f{}对🚀+-@\\"), max_size=6)
_TEXTS = st.lists(_LINES, min_size=1, max_size=8).map("\n".join).filter(bool)


@settings(max_examples=30)
@given(_TEXTS, _TEXTS, _TEXTS)
def test_applying_the_diff_gives_the_candidate(tiling, before, after):
    base, candidate = make_candidate(tiling, before), make_candidate(tiling, after)
    diff = unified_diff(base, candidate)
    assert (diff == "") == (before == after)
    assert "op_host" not in diff
    with tempfile.TemporaryDirectory() as name:
        _, kernel = write_candidate(base, Path(name))
        if diff:
            _apply(diff, Path(name))
        assert kernel.read_bytes() == after.encode()


def _apply(diff: str, folder: Path) -> None:
    done = subprocess.run(
        ["git", "apply", "--unsafe-paths", "--whitespace=nowarn", "-p1", "-"],
        input=diff.encode(),
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_both_sides_are_in_the_diff():
    diff = unified_diff(make_candidate("t1\n", "k1\n"), make_candidate("t2\n", "k2"))
    assert diff.splitlines() == [
        "--- a/op_host/toy.cpp",
        "+++ b/op_host/toy.cpp",
        "@@ -1 +1 @@",
        "-t1",
        "+t2",
        "--- a/op_kernel/toy.cpp",
        "+++ b/op_kernel/toy.cpp",
        "@@ -1 +1 @@",
        "-k1",
        "+k2",
        "\\ No newline at end of file",
    ]
