"""Record and replay: a model's answers in a file, so that a paid run can be run again for free.

A cassette holds each prompt once and each answer under the digest of model, messages, seed and token limit.
It holds no key and no address.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ascend_gym.core.append_log import AppendLog, read_log
from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError, ModelError
from ascend_gym.core.interrupts import interrupts_held_back
from ascend_gym.core.protocols import Completion, Ending, Llm, Message
from ascend_gym.core.text import well_formed
from ascend_gym.search.llm.prompts import prompt_digest


class AnswerLog:
    """Records with a ``digest`` field, one per JSON line. Safe for use from several threads.

    A line torn by a crash is dropped; of records with the same digest the first counts.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        """Read ``path``; if ``writable``, create it when missing, else leave the file alone.

        Raises:
            MisuseError: the file is no log, or is missing and not writable.
        """
        self.path = path
        self._log = AppendLog(path) if writable else None
        records = self._log.records if self._log else read_log(path)
        self._known = {record.get("digest"): record for record in reversed(records)}
        self._asking: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, digest: str) -> dict[str, Any] | None:
        """Return the record of that digest, or ``None``."""
        return self._known.get(digest)

    def put(self, *records: dict[str, Any]) -> None:
        """Append those records whose digest is not known; they are on disk on return.

        Raises:
            ModelError: the log is read-only, or closed.
        """
        with self._lock, interrupts_held_back():
            if self._log is None:
                raise ModelError(f"{self.path} is not open for writing")
            for record in records:
                if record["digest"] not in self._known:
                    self._log.append(record)
                    self._known[record["digest"]] = record

    @contextmanager
    def sole_right(self, digest: str, timeout_s: float) -> Iterator[None]:
        """Hold the sole right to ask for ``digest``, so that threads with one question ask it once.

        Raises:
            ModelError: another thread has been asking for ``timeout_s``.
        """
        with self._lock:
            lock = self._asking.setdefault(digest, threading.Lock())
        if not lock.acquire(timeout=min(timeout_s, threading.TIMEOUT_MAX)):
            raise ModelError(f"the same question has been under way for {timeout_s:.3g} s")
        try:
            yield
        finally:
            lock.release()

    def close(self) -> None:
        """Close the file; what was recorded stays."""
        with self._lock:
            if self._log is not None:
                self._log.close()
            self._log = None


class CassetteMode(str, Enum):
    """What a cassette is for.

    ``record``: known questions are answered for free, others are asked and recorded. ``replay``: the file is
    only read, and an unknown question is an error. ``resume``: as ``record``, but a known answer is returned
    as it was first given, so that it counts against the budget of the run that it belongs to.
    """

    RECORD = "record"
    REPLAY = "replay"
    RESUME = "resume"


class _Answer(BaseModel):
    """An answer on file; ``digest`` identifies the question."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: str = "answer"
    digest: str
    asked_model: str
    prompt: str
    seed: int
    max_tokens: int
    text: str
    prompt_tokens: int
    completion_tokens: int
    model: str
    recorded: bool
    ending: Literal["complete", "token_limit", "refused"] = "complete"
    cached_tokens: int = Field(default=0, exclude_if=lambda value: not value)


class CassetteLlm:
    """An ``Llm`` that remembers. Safe for use from several threads."""

    def __init__(self, inner: Llm | None, path: Path, mode: CassetteMode, *, model: str) -> None:
        """Put a cassette in front of ``inner``.

        Args:
            inner: answers what is not on file; ``None`` in ``replay`` mode.
            path: the file.
            mode: what the cassette is for.
            model: name of the model asked, and whatever else changes its answers.

        Raises:
            MisuseError: the file is no cassette; ``replay`` without a file, or another mode without a model.
        """
        if inner is None and mode is not CassetteMode.REPLAY:
            raise MisuseError(f"a cassette in {mode.value} mode needs a model to ask")
        self._inner = None if mode is CassetteMode.REPLAY else inner
        self._mode, self._model = mode, model
        self._answers = AnswerLog(path, writable=mode is not CassetteMode.REPLAY)

    def complete(
        self, messages: Sequence[Message], *, seed: int, max_tokens: int, deadline_s: float
    ) -> Completion:
        """Answer from the file, else ask the model and record its answer (see ``Llm``).

        Raises:
            ModelError: the model could not answer, or ``replay`` mode does not know the question.
            MisuseError: the answer on file is damaged.
        """
        digest = question_digest(self._model, messages, seed, max_tokens)
        with self._answers.sole_right(digest, deadline_s):
            record = self._answers.get(digest)
            if record is not None:
                return self._replayed(record)
            if self._inner is None:
                raise ModelError(
                    f"{self._answers.path} holds no answer of model {self._model!r} to question {digest}: "
                    "replay with the settings and the version that recorded it, or record"
                )
            completion = self._inner.complete(
                messages, seed=seed, max_tokens=max_tokens, deadline_s=deadline_s
            )
            self._record(digest, messages, seed, max_tokens, completion)
            return completion

    def close(self) -> None:
        """Close the file; what was recorded stays."""
        self._answers.close()

    def _replayed(self, record: dict[str, Any]) -> Completion:
        try:
            answer = _Answer.model_validate(record)
        except ValidationError as error:
            raise MisuseError(f"{self._answers.path}: damaged answer {record['digest']}: {error}") from error
        return Completion(
            text=answer.text,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            model=answer.model,
            recorded=answer.recorded or self._mode is not CassetteMode.RESUME,
            ending=Ending(answer.ending),
            cached_tokens=answer.cached_tokens,
        )

    def _record(
        self, digest: str, messages: Sequence[Message], seed: int, max_tokens: int, completion: Completion
    ) -> None:
        prompt = {
            "kind": "prompt",
            "digest": prompt_digest(messages),
            "messages": [[message.role, well_formed(message.content)] for message in messages],
        }
        answer = _Answer(
            digest=digest,
            asked_model=self._model,
            prompt=prompt_digest(messages),
            seed=seed,
            max_tokens=max_tokens,
            text=completion.text,
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            model=completion.model,
            recorded=completion.recorded,
            ending=completion.ending.value,
            cached_tokens=completion.cached_tokens,
        )
        self._answers.put(prompt, answer.model_dump())


def question_digest(model: str, messages: Sequence[Message], seed: int, max_tokens: int) -> str:
    """Return the identity of a question to a model: everything here changes the answer."""
    chat = [(message.role, message.content) for message in messages]
    return digest_of("question", model, chat, seed, max_tokens)
