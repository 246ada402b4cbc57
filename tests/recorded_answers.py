"""A model that answers from a folder: somebody writes the answers one by one, and tests repeat them.

``001.md`` answers the first question of a run, ``002.md`` the second, and so on: questions are told apart by
their order, not by their text, because prices and wording change while an answer written in earnest stays
one. A run that is to be answered so asks one question at a time. A question that is asked again, as clients
do when they lose patience, keeps its number.

    python tests/recorded_answers.py --folder DIR --wait

serves the folder over HTTP as model ``recorded``. With ``--wait`` a question without an answer is written to
``001.prompt.md``, and answered as soon as ``001.md`` is there. Without it such a question is an error.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ascend_gym.core.errors import ModelError
from ascend_gym.core.protocols import Completion, Message
from ascend_gym.search.llm.cassette import question_digest
from ascend_gym.search.llm.server import LlmServer, stop_signals

MODEL = "recorded"
_POLL_S = 0.5


class RecordedAnswers:
    """Answers the n-th question with the n-th file of a folder. An ``Llm``."""

    def __init__(self, folder: Path, *, wait: bool = False) -> None:
        """Answer from ``folder``; with ``wait``, write down what is asked and wait for missing answers."""
        self._folder, self._wait = folder, wait
        self._numbers: dict[str, int] = {}  # of questions, by their digests
        self._lock = threading.Lock()

    def complete(
        self, messages: Sequence[Message], *, seed: int, max_tokens: int, deadline_s: float
    ) -> Completion:
        """Return the answer of the next file (see ``Llm``).

        Raises:
            ModelError: there is none, or none appeared before the deadline.
        """
        with self._lock:
            digest = question_digest(MODEL, messages, seed, max_tokens)
            number = self._numbers.setdefault(digest, len(self._numbers) + 1)
        answer = self._folder / f"{number:03}.md"
        if self._wait:
            self._await(answer, messages, deadline_s)
        if not _is_written(answer):
            raise ModelError(f"expected an answer in {answer}, there is none: write it")
        text = answer.read_text(encoding="utf-8")
        return Completion(text=text, prompt_tokens=0, completion_tokens=0, model=MODEL)

    def _await(self, answer: Path, messages: Sequence[Message], deadline_s: float) -> None:
        if _is_written(answer):
            return
        told = "\n\n".join(f"<!-- {message.role} -->\n\n{message.content}" for message in messages)
        answer.with_suffix(".prompt.md").write_text(told, encoding="utf-8")
        deadline = time.monotonic() + deadline_s
        while not _is_written(answer) and time.monotonic() < deadline:
            time.sleep(_POLL_S)


def _is_written(answer: Path) -> bool:
    """Return whether an answer is there; an empty file is one that somebody has begun to write."""
    return answer.exists() and answer.stat().st_size > 0


def main() -> None:
    """Serve a folder until interrupted; print the base URL."""
    parser = argparse.ArgumentParser(description="Serve answers of a folder over HTTP in the OpenAI format.")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--wait", action="store_true", help="Write questions down and wait for answers.")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    models = {MODEL: RecordedAnswers(options.folder, wait=options.wait)}
    with stop_signals() as stop, LlmServer(models, port=options.port) as server:
        print(server.base_url, flush=True)
        stop.wait()


if __name__ == "__main__":
    main()
