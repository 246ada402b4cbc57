"""Whoever changes what inputs, verdicts, floors or scores depend on says whether results can change.

``python tests/unit/test_harness.py`` records the sources as they are, after ``HARNESS_VERSION`` was raised or
because no result can change.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import tokenize
from pathlib import Path

import npu_daemon
from npu_daemon.harness import HARNESS_VERSION, harness_sources

ROOT = Path(__file__).parents[2]
INSTALLED = Path(npu_daemon.__path__[0]).parent
RECORD = ROOT / "tests" / "data" / "harness_sources.json"


def code_digest(text: str) -> str:
    """Return the digest of a source but for comments, docstrings and empty lines."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    code = "\n".join(line.rstrip() for line in lines if line.strip())
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def present() -> dict[str, object]:
    """Return version and digests of today's sources."""
    paths = {str(path.relative_to(INSTALLED)): path for path in harness_sources()}
    return {
        "version": HARNESS_VERSION,
        "sources": {name: code_digest(path.read_text("utf-8")) for name, path in paths.items()},
    }


def changed_sources(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return the names of what was added, removed or changed."""
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def test_a_change_of_the_harness_says_whether_results_can_change() -> None:
    recorded = json.loads(RECORD.read_text("utf-8"))
    now = json.loads(json.dumps(present()))
    changed = changed_sources(recorded["sources"], now["sources"])
    assert now == recorded, (
        f"changed: {', '.join(changed) or 'only HARNESS_VERSION'}. If inputs, verdicts, floors or scores "
        "can change, raise HARNESS_VERSION in npu_daemon/harness.py. Then run "
        "'python tests/unit/test_harness.py'"
    )


def test_prose_does_not_count_and_code_does() -> None:
    source = 'def twice(x):\n    """Return it."""\n    return 2 * x\n'
    prose = (
        '"""Numbers."""\n\ndef twice(x):  # a number\n    """Return\n\n    twice it."""\n\n    return 2 * x\n'
    )
    assert code_digest(source) == code_digest(prose)
    assert code_digest(source) != code_digest(source.replace("2", "3"))
    assert changed_sources({"a": "1", "b": "2"}, {"b": "3", "c": "4"}) == ["a", "b", "c"]


if __name__ == "__main__":
    RECORD.write_text(json.dumps(present(), indent=1) + "\n", encoding="utf-8")
