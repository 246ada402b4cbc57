"""The process that runs OpenEvolve 0.4 (https://pypi.org/project/openevolve); see ``package_link``.

What it changes in OpenEvolve, and why:

- The model and the evaluator are at the other end of the line, so that all methods share one accounting.
- Iterations run in this process, one after the other, instead of in a pool of one forked worker. Each sees
  the population that it would see there (read from OpenEvolve's source): the first ones, one an island, only
  the initial program. Worker and controller draw from one stream of random numbers.
- Islands and archive are sets that keep the order of insertion. OpenEvolve draws from sets of random ids,
  whose order differs from process to process whatever its seed. This way a run follows from its seed: ids
  and times still differ, but no choice depends on them. (What remains: OpenEvolve evicts the oldest of
  1,000 cached diversity values by the clock; if that is set back, others are computed again.)
- An error that OpenEvolve would log before it goes on without the evaluation ends the process.
- Prompts tell of the last attempts with their changes, measurements and diagnostics, failed ones too, where
  OpenEvolve repeats the best programs; and they show no program twice.
- Its redaction of "secrets" is off: it would blank every long identifier in the compiler's messages. Its
  advice to simplify programs of more than 500 characters is off too, and so are its own checkpoints.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableSet
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openevolve.controller
import openevolve.evaluator
import openevolve.process_parallel
import openevolve.prompt.sampler
from openevolve.config import Config, DatabaseConfig, EvaluatorConfig, LLMConfig, LLMModelConfig, PromptConfig
from openevolve.evaluation_result import EvaluationResult
from openevolve.utils.code_utils import apply_diff_blocks, extract_diffs

from baselines.openevolve_history import History, distinct, without_empty_sections
from baselines.package_link import Line

_NO_TIMEOUT_S = 10**7  # whoever answers keeps the time
_MODEL_NAME = "ascend-gym"
_STATUS_FAILED = 4


def main() -> None:
    """Run OpenEvolve as the first message says; the argument is the descriptor of the line."""
    line = Line(int(sys.argv[1]))
    order = line.wait()
    folder = Path.cwd()
    program_file = folder / "operator.cpp"
    program_file.write_text(order["program"], "utf-8")
    history = History()
    _redirect(line, history)
    evolution = openevolve.controller.OpenEvolve(
        str(program_file),
        evaluation_file="",
        config=_config(order, folder, line, history),
        output_dir=str(folder / "output"),
    )
    evolution.database.islands = [_OrderedSet() for _ in evolution.database.islands]
    evolution.database.archive = _OrderedSet()
    for module in (openevolve.evaluator, openevolve.process_parallel):
        module.logger.addHandler(_EndOnError(logging.ERROR))
    asyncio.run(evolution.run())


class _Model:
    """The client that OpenEvolve asks for completions."""

    def __init__(self, line: Line, history: History) -> None:
        self.model = _MODEL_NAME
        self._line, self._history = line, history

    async def generate_with_context(
        self, system_message: str, messages: list[dict[str, str]], **_: Any
    ) -> str:
        chat = [["system", system_message], *([each["role"], each["content"]] for each in messages)]
        text = str(self._line.ask("complete", messages=chat)["text"])
        self._history.answered(_left_out(self._history.current, text))
        return text


class _OneByOne(ThreadPoolExecutor):
    """A pool of one in which a task is done when ``submit`` returns."""

    def __init__(self, line: Line, history: History) -> None:
        super().__init__(max_workers=1)
        self._line, self._history = line, history

    def submit(self, task: Any, /, *args: Any, **options: Any) -> Future[Any]:
        future = super().submit(task, *args, **options)
        problem = future.result().error
        if problem:
            self._history.note(None, {}, problem)
            self._line.ask("next", problem=problem)
        return future


class _OrderedSet(MutableSet[str]):
    """A set that is iterated in the order of insertion."""

    def __init__(self, items: Iterable[str] = ()) -> None:
        self._items = dict.fromkeys(items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, value: str) -> None:
        self._items[value] = None

    def discard(self, value: str) -> None:
        self._items.pop(value, None)


class _EndOnError(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)
        os._exit(_STATUS_FAILED)


def _redirect(line: Line, history: History) -> None:
    """Have OpenEvolve evaluate at the other end of the line, iterate here, and tell what happened."""

    build_prompt = openevolve.prompt.sampler.PromptSampler.build_prompt

    def prompt(sampler: Any, **shown: Any) -> dict[str, str]:
        history.begin(shown["current_program"])
        seen = {shown["current_program"]}
        shown["previous_programs"] = history.last()
        for name in ("top_programs", "inspirations"):
            shown[name] = distinct(shown[name], seen)
        built = dict(build_prompt(sampler, **shown))
        return {**built, "user": without_empty_sections(built["user"])}

    def evaluate(program_path: str) -> EvaluationResult:
        program = Path(program_path).read_bytes().decode()
        answer = line.ask("evaluate", program=program)
        history.note(program, answer["metrics"], answer["feedback"])
        return EvaluationResult(answer["metrics"], {"measurement": answer["feedback"]})

    def load(evaluator: Any) -> None:
        evaluator.evaluate_function = evaluate

    def start(controller: Any) -> None:
        settings = controller._serialize_config(controller.config)
        openevolve.process_parallel._worker_init(settings, controller.evaluation_file)
        controller.executor = _OneByOne(line, history)

    openevolve.prompt.sampler.PromptSampler.build_prompt = prompt
    openevolve.evaluator.Evaluator._load_evaluation_function = load
    openevolve.process_parallel.ProcessParallelController.start = start


def _left_out(program: str, answer: str) -> list[str]:
    """Return a line for each edit of an answer that OpenEvolve leaves out, as it matches nowhere."""
    told = []
    try:
        edits = extract_diffs(answer)
    except ValueError:  # malformed: OpenEvolve says so itself
        return []
    for search, replacement in edits:
        program, applied = apply_diff_blocks(program, [(search, replacement)])
        if not applied:
            first = search.strip().split("\n")[0]
            told.append(f"- left out, as its SEARCH part is nowhere in the program: the edit at {first!r}")
    return told


def _config(order: Mapping[str, Any], folder: Path, line: Line, history: History) -> Config:
    iterations = order["max_iterations"]
    return Config(
        max_iterations=iterations,
        checkpoint_interval=iterations + 1,
        log_level="WARNING",
        random_seed=order["seed"],
        language="cpp",
        file_suffix=".cpp",
        max_code_length=order["max_code_length"],
        llm=LLMConfig(models=[LLMModelConfig(name=_MODEL_NAME, init_client=lambda _: _Model(line, history))]),
        prompt=PromptConfig(
            template_dir=str(_templates(folder / "templates", order["templates"])),
            system_message=order["system_message"],
            artifact_security_filter=False,
            suggest_simplification_after_chars=None,
            **order["prompt"],
        ),
        database=DatabaseConfig(
            log_prompts=False,
            artifacts_base_path=str(folder / "artifacts"),
            max_snapshot_artifacts=None,  # it would be those of the oldest programs
            **order["database"],
        ),
        evaluator=EvaluatorConfig(timeout=_NO_TIMEOUT_S, max_retries=0, cascade_evaluation=False),
    )


def _templates(folder: Path, texts: Mapping[str, str]) -> Path:
    """Write templates where and how OpenEvolve looks for them."""
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text, "utf-8")
    return folder
