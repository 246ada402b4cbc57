"""Embeddings of texts by weighted words, and retrieval with any embedder."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from agents.ascend_optimizer.bank import ExperienceBank
from agents.ascend_optimizer.retrieval import RetrievalKey, Retriever, retrieval_key
from agents.ascend_optimizer.sentence_model import SentenceEmbedder
from ascend_gym.core.config import cache_root
from ascend_gym.core.digest import digest_of
from ascend_gym.core.protocols import Embedder
from ascend_gym.search.llm import embedder_named
from ascend_gym.search.llm.cassette import CassetteMode

if TYPE_CHECKING:
    from ascend_gym.core.protocols import Array

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PART = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*")
_GRAM_CHARS = 4
_MAX_TERMS = 20_000

_Terms = Callable[[str], Iterator[str]]

LEXICAL = "lexical"
SENTENCE = "minilm"


class LexicalEmbedder:
    """Embeds texts by the terms that they share with a corpus, usually the bank's own texts.

    Terms are words, the parts of identifiers (``aiv_mte2_ratio`` is also aiv, mte2 and ratio; ``PipeBarrier``
    also pipe and barrier), and runs of four characters of them, so that copy and copies meet. Words and
    runs count half each. Terms that the corpus does not have are ignored.
    """

    def __init__(self, corpus: Sequence[str]) -> None:
        """Learn terms and their weights from ``corpus``."""
        self._spaces = [_Space.fitted(terms, corpus) for terms in (words, character_runs)]
        self._name = f"lexical-{digest_of('lexical', list(corpus))[:12]}"

    @property
    def name(self) -> str:
        """Identity of the embedding: it depends on the corpus."""
        return self._name

    def embed(self, texts: Sequence[str]) -> Array:
        """Return a float32 array of shape ``(len(texts), d)`` whose rows have length 1.

        The first column is for texts without any known term; they are unlike all others.
        """
        blocks = [_unit_rows(space.weights(texts)) for space in self._spaces]
        known = np.concatenate(blocks, axis=1)
        unknown = np.asarray(~known.any(axis=1), dtype=np.float64)[:, None]
        return _unit_rows(np.concatenate([unknown, known], axis=1)).astype(np.float32)


@dataclass(frozen=True)
class _Space:
    """One kind of terms: its columns and how rare each term is in the corpus."""

    terms: _Terms
    columns: Mapping[str, int]
    rarity: Array

    @classmethod
    def fitted(cls, terms: _Terms, corpus: Sequence[str]) -> _Space:
        texts_with = Counter(term for text in corpus for term in set(terms(text)))
        common_first = sorted(texts_with, key=lambda term: (-texts_with[term], term))
        columns = {term: column for column, term in enumerate(common_first[:_MAX_TERMS])}
        rarity = [math.log((len(corpus) + 1) / (texts_with[term] + 0.5)) for term in columns]
        return cls(terms, columns, np.array(rarity, dtype=np.float64))

    def weights(self, texts: Sequence[str]) -> Array:
        """Return an array of shape ``(len(texts), terms)``: (1 + log of the count) times rarity."""
        weights = np.zeros((len(texts), len(self.columns)))
        for row, text in enumerate(texts):
            for term, count in Counter(self.terms(text)).items():
                column = self.columns.get(term)
                if column is not None:
                    weights[row, column] = (1.0 + math.log(count)) * self.rarity[column]
        return weights


def words(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case, and the parts of those that are put together."""
    for identifier in _IDENTIFIER.findall(text):
        yield identifier.lower()
        parts = _PART.findall(identifier)
        if len(parts) > 1:
            yield from (part.lower() for part in parts)


def character_runs(text: str) -> Iterator[str]:
    """Yield the runs of four characters of each part of a word, its ends marked by blanks."""
    for identifier in _IDENTIFIER.findall(text):
        for part in _PART.findall(identifier):
            yield from _runs_of(part)


@lru_cache(maxsize=_MAX_TERMS)  # texts have many words, and few different ones
def _runs_of(part: str) -> tuple[str, ...]:
    padded = f" {part.lower()} "
    return tuple(padded[at : at + _GRAM_CHARS] for at in range(max(1, len(padded) - _GRAM_CHARS + 1)))


def _unit_rows(rows: Array) -> Array:
    """Return ``rows`` scaled to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0))


def retriever_named(
    name: str,
    bank: ExperienceBank,
    key: str = RetrievalKey.BOTTLENECK_AND_APPLICABILITY,
    *,
    endpoint: Callable[[str], Embedder] = embedder_named,
    least_score: float = 0.0,
) -> Retriever:
    """Return retrieval from ``bank`` with the embedder of that name.

    Args:
        name: ``lexical``, ``minilm`` (extra ``retrieval``), or an embedding model of an endpoint.
        bank: where to search.
        key: part of an experience that is compared with the query.
        endpoint: opens the embedding model of a name that is not one of ours.
        least_score: see ``Retriever``.

    Raises:
        MisuseError: there is no such key, or the embedder's package or endpoint is missing.
        ModelError: the endpoint did not answer.
    """
    texts = [retrieval_key(key).text_of(experience) for experience in bank]
    return Retriever(bank, _embedder(name, texts, endpoint), key, least_score=least_score)


def remembering(vectors: Path, base_url: str | None = None) -> Callable[[str], Embedder]:
    """Return how to open an embedding model of an endpoint so that no text is paid for twice.

    Args:
        vectors: file in which its vectors are kept.
        base_url: address of the endpoint; ``None`` means the one that the environment names.
    """

    def opened(name: str) -> Embedder:
        from ascend_gym.search.llm.embeddings import CassetteEmbedder, embedding_name

        model = embedder_named(name, base_url=base_url)
        return CassetteEmbedder(model, vectors, CassetteMode.RECORD, name=embedding_name(name))

    return opened


def vectors_for(bank: Path | None) -> Path:
    """Return where vectors of a bank are kept: beside its file, or in the cache for the one that ships."""
    return cache_root() / "bank.vectors.jsonl" if bank is None else bank.with_suffix(".vectors.jsonl")


def _embedder(name: str, texts: list[str], endpoint: Callable[[str], Embedder]) -> Embedder:
    if name == LEXICAL:
        return LexicalEmbedder(texts)
    if name == SENTENCE:
        return SentenceEmbedder()
    return endpoint(name)
