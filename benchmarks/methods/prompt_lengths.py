"""How long the first prompt of each kind is, by method and by part, in characters.

Each method runs with a model that answers nothing that can be used, so that all it asks is asked of the
operator's own sources; the model is served over HTTP as a real one would be. Kinds are told apart by the
heading ``# Task: ...``.

    python benchmarks/methods/prompt_lengths.py --op gelu --op affine=tests/operators/affine
        [--method iterate] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from ascend_gym.cli.methods import RunSettings
from ascend_gym.cli.models import ModelAccess
from ascend_gym.cli.runs import operator_of, run_in_folder
from ascend_gym.core.config import cache_root
from ascend_gym.core.protocols import Completion, Message
from ascend_gym.search.llm.server import LlmServer
from npu_daemon.backends.simulator import SimulatorBackend
from npu_daemon.in_process import InProcessEvaluator

METHODS = ("best-of-n", "iterate", "openevolve", "gepa", "ascend-optimizer")
MODEL = "silent"
BUDGET = 6
PARTS = ("target", "calls", "sources", "rest")
_TASK = re.compile(r"^# Task: (.*)", re.MULTILINE)
_SHEET = r"^## {}\n.*?(?=^## |^# |^<!|\Z)"
_FILE = re.compile(r"^### FILE: [^<\n]*\n.*?^```\w*\n.*?^```", re.MULTILINE | re.DOTALL)


class SilentModel:
    """Keeps what it is asked and proposes nothing. An ``Llm``."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self.prompts: list[str] = []

    def complete(
        self, messages: Sequence[Message], *, seed: int, max_tokens: int, deadline_s: float
    ) -> Completion:
        """Return an answer without a change (see ``Llm``)."""
        self.prompts.append("\n".join(message.content for message in messages))
        return Completion(text="I have no proposal.", prompt_tokens=0, completion_tokens=0, model=MODEL)


def parts_of(prompt: str) -> dict[str, int]:
    """Return the characters of each part of a prompt."""
    lengths = {}
    for part in ("Target", "Calls"):
        found = re.search(_SHEET.format(part), prompt, re.MULTILINE | re.DOTALL)
        lengths[part.lower()] = len(found[0]) if found else 0
    lengths["sources"] = sum(len(each) for each in _FILE.findall(prompt))
    return {**lengths, "rest": len(prompt) - sum(lengths.values())}


def questions_of(method: str, operator: str, evaluator: InProcessEvaluator) -> dict[str, dict[str, int]]:
    """Return the lengths of the first prompt of each kind that a method asks about an operator."""
    name, _, folder_of_operator = operator.partition("=")
    chosen = {"operator": name, "op_dir": folder_of_operator or None, "method": method}
    settings = RunSettings.model_validate({**chosen, "model": MODEL, "budget": BUDGET})
    spec, model = operator_of(settings), SilentModel()
    with tempfile.TemporaryDirectory() as folder, LlmServer({MODEL: model}) as server:
        access = ModelAccess(base_url=server.base_url)
        run_in_folder(nullcontext(evaluator), Path(folder) / "run", spec, settings, access=access)
    first: dict[str, dict[str, int]] = {}
    for prompt in model.prompts:
        task = _TASK.search(prompt)
        first.setdefault(task[1] if task else "without a task", parts_of(prompt))
    return first


def main() -> None:
    """Print a line for each operator, method and kind of question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--op", action="append", required=True, metavar="NAME[=DIR]")
    parser.add_argument("--method", action="append", choices=METHODS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("OPENAI_API_KEY", "none")
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        evaluator = InProcessEvaluator(SimulatorBackend(cache_root()), Path(cache))
        for operator in options.op:
            for method in options.method or METHODS:
                for kind, lengths in questions_of(method, operator, evaluator).items():
                    rows.append({"operator": operator, "method": method, "kind": kind, **lengths})
                    told = " ".join(f"{part} {lengths[part]:,}" for part in PARTS)
                    print(f"{operator} {method} {kind}: {sum(lengths.values()):,} ({told})", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
