"""Embeddings behind any endpoint in the OpenAI format, and a cassette that asks for each text once."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError, ModelError
from ascend_gym.core.protocols import Embedder
from ascend_gym.core.text import well_formed
from ascend_gym.search.llm.cassette import AnswerLog, CassetteMode
from ascend_gym.search.llm.endpoint import Endpoint, RequestFailure
from ascend_gym.search.llm.limits import CallLimits, Clock, texts_bound_tokens

if TYPE_CHECKING:
    from ascend_gym.core.protocols import Array

BATCH = 64
DEADLINE_S = 120.0

MAX_VECTORS_BYTES = 32 * 2**20  # 64 vectors of 8192 numbers of 20 characters, and more
_TURN = "embed"


def embedding_name(model: str) -> str:
    """Return the identity of a model's embeddings, wherever it is served."""
    return f"openai:{model}"


class OpenAiEmbedder:
    """An ``Embedder`` over HTTP; asks again and keeps to limits as the chat client does. Thread-safe."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        api_key: str | None,
        limits: CallLimits | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Prepare to ask ``model``; nothing is sent yet. Arguments as of ``OpenAiEndpoint``.

        Raises:
            MisuseError: the address or the key cannot be right, or both are missing.
        """
        self.model = model
        limits = limits or CallLimits(max_answer_bytes=MAX_VECTORS_BYTES)
        self._endpoint = Endpoint(base_url, api_key, limits, clock or Clock(), model)

    @property
    def name(self) -> str:
        """Identity of the embedding."""
        return embedding_name(self.model)

    def embed(self, texts: Sequence[str]) -> Array:
        """Return a float32 array of shape ``(len(texts), d)`` whose rows have length 1.

        Raises:
            ModelError: the endpoint did not answer, or with something else than that many vectors.
        """
        batches = [self._batch(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        if len({batch.shape[1] for batch in batches}) > 1:
            raise ModelError(f"model {self.model!r}: its vectors are not all of one length")
        return np.concatenate(batches) if batches else np.zeros((0, 0), np.float32)

    def _batch(self, texts: Sequence[str]) -> Array:
        asked = [well_formed(text) or " " for text in texts]  # OpenAI refuses empty texts
        outcome = self._endpoint.ask(
            self._endpoint.sdk.embeddings.with_raw_response.create,
            {"model": self.model, "input": asked, "encoding_format": "float"},
            lambda answer: _vectors(answer, len(asked)),
            bound_tokens=texts_bound_tokens(asked),
            give_up_at=self._endpoint.deadline(DEADLINE_S),
        )
        if isinstance(outcome, RequestFailure):
            raise ModelError(f"model {self.model!r}: {outcome.message}")
        return outcome


class CassetteEmbedder:
    """An ``Embedder`` that remembers: a text on file is embedded for free. Thread-safe."""

    def __init__(self, inner: Embedder | None, path: Path, mode: CassetteMode, *, name: str) -> None:
        """Put a cassette in front of ``inner``; ``path`` may be that of a ``CassetteLlm``.

        Args:
            inner: embeds what is not on file; ``None`` in ``replay`` mode.
            path: the file.
            mode: ``resume`` is the same as ``record`` here.
            name: identity of the embedding.

        Raises:
            MisuseError: the file is no cassette; ``replay`` without a file, or another mode without a model.
        """
        if inner is None and mode is not CassetteMode.REPLAY:
            raise MisuseError(f"a cassette in {mode.value} mode needs a model to ask")
        self._inner = None if mode is CassetteMode.REPLAY else inner
        self._answers = AnswerLog(path, writable=mode is not CassetteMode.REPLAY)
        self._name = name

    @property
    def name(self) -> str:
        """Identity of the embedding."""
        return self._name

    def embed(self, texts: Sequence[str]) -> Array:
        """Embed, from the file where it can be (see ``Embedder``).

        Raises:
            ModelError: the embeddings could not be had, or ``replay`` mode does not know a text.
            MisuseError: a vector on file is damaged.
        """
        digests = {text: digest_of("embedding", self._name, text) for text in texts}
        with self._answers.sole_right(_TURN, DEADLINE_S):
            unknown = [text for text, digest in digests.items() if self._answers.get(digest) is None]
            if unknown:
                self._ask(unknown, digests)
        rows = [self._row(digests[text]) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, 0), np.float32)

    def close(self) -> None:
        """Close the file; what was recorded stays."""
        self._answers.close()

    def _ask(self, texts: list[str], digests: dict[str, str]) -> None:
        if self._inner is None:
            raise ModelError(f"{self._answers.path} holds no {self._name!r} embedding {digests[texts[0]]}")
        for text, row in zip(texts, self._inner.embed(texts), strict=True):
            vector = base64.b64encode(row.astype("<f4").tobytes()).decode()
            self._answers.put(
                {"kind": "embedding", "digest": digests[text], "name": self._name, "vector": vector}
            )

    def _row(self, digest: str) -> Array:
        record = self._answers.get(digest) or {}
        try:
            vector = base64.b64decode(record["vector"], validate=True)
            return np.frombuffer(vector, "<f4").astype(np.float32)
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise MisuseError(f"{self._answers.path}: damaged embedding {digest}: {error}") from error


def _vectors(answer: Any, count: int) -> Array:
    """Read an answer, which may be any JSON, into ``count`` rows of length 1.

    Raises:
        ValueError: it is not that many vectors of numbers.
    """
    items = answer.get("data") if isinstance(answer, dict) else None
    if (
        not isinstance(items, list)
        or len(items) != count
        or not all(isinstance(item, dict) for item in items)
    ):
        raise ValueError(f"expected a list of {count} embeddings")
    if {item.get("index") for item in items if type(item.get("index")) is int} == set(range(count)):
        items = sorted(items, key=lambda item: item["index"])
    rows = [item.get("embedding") for item in items]
    if not all(isinstance(row, list) and all(type(x) in (int, float) for x in row) for row in rows):
        raise ValueError("expected embeddings to be lists of numbers")
    try:
        vectors = np.array(rows, np.float64)
        with np.errstate(all="ignore"):
            unit: Array = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    except OverflowError as error:
        raise ValueError(str(error)) from error
    if unit.ndim != 2 or not np.allclose(np.linalg.norm(unit, axis=1), 1.0, atol=1e-3):
        raise ValueError("expected embeddings with a length and a direction")
    return unit
