"""Dense retrieval of experience by the bottleneck that was diagnosed (section 3.4.2)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Protocol

from agents.ascend_optimizer.bank import ExperienceBank
from agents.ascend_optimizer.experience import Experience
from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Embedder

_SCORE_DIGITS = 5  # what float32 gives on any machine


class RetrievalKey(str, Enum):
    """Which part of an experience the query is compared with."""

    BOTTLENECK = "bottleneck"
    BOTTLENECK_AND_APPLICABILITY = "bottleneck+applicability"

    def text_of(self, experience: Experience) -> str:
        """Return that part; version 1 of the paper has the first kind of key, version 2 the second."""
        if self is RetrievalKey.BOTTLENECK:
            return experience.bottleneck
        return f"{experience.bottleneck}\n{experience.applicability}"


def retrieval_key(name: str) -> RetrievalKey:
    """Return the retrieval key of that name.

    Raises:
        MisuseError: there is none.
    """
    try:
        return RetrievalKey(name)
    except ValueError as error:
        known = ", ".join(key.value for key in RetrievalKey)
        raise MisuseError(f"no retrieval key {name!r}; there are {known}") from error


@dataclass(frozen=True)
class Retrieved:
    """An experience that was found.

    Attributes:
        experience: the experience.
        score: how alike query and experience are: cosine, at most 1.
    """

    experience: Experience
    score: float


class ExperienceRetriever(Protocol):
    """Finds experience for a diagnosed bottleneck."""

    def top(self, query: str, k: int) -> list[Retrieved]:
        """Return up to ``k`` experiences, the best first."""


class Retriever:
    """Finds the experiences whose symptoms are most like the query."""

    def __init__(
        self,
        bank: ExperienceBank,
        embedder: Embedder,
        key: str = RetrievalKey.BOTTLENECK_AND_APPLICABILITY,
        *,
        least_score: float = 0.0,
    ) -> None:
        """Embed the bank.

        Args:
            bank: where to search.
            embedder: turns texts into vectors.
            key: ``bottleneck`` (version 1) or ``bottleneck+applicability`` (version 2).
            least_score: experiences that are less alike than this are not found, so that nothing may be.

        Raises:
            ModelError: the embeddings could not be had.
            MisuseError: there is no such key.
        """
        self._experiences = list(bank)
        self._embedder, self._least_score = embedder, least_score
        texts = [retrieval_key(key).text_of(experience) for experience in self._experiences]
        self._vectors = embedder.embed(texts) if texts else None

    def top(self, query: str, k: int) -> list[Retrieved]:
        """Return up to ``k`` experiences, the most alike first; equal ones in the order of the bank.

        Each is the best of its motif, so that they differ in what they advise. Those below the least
        score are left out; there may be none.

        Raises:
            ModelError: the query's embedding could not be had.
        """
        if self._vectors is None:
            return []
        scores = (self._vectors @ self._embedder.embed([query])[0]).round(_SCORE_DIGITS).tolist()
        alike = [index for index, score in enumerate(scores) if score >= self._least_score]
        order = sorted(alike, key=lambda index: (-scores[index], index))
        found = (Retrieved(self._experiences[index], scores[index]) for index in order)
        return list(islice(_one_of_each_motif(found), k))


class RandomRetriever:
    """Finds any experiences, whatever the query says: the ablation of retrieval."""

    def __init__(self, bank: ExperienceBank, seed: int) -> None:
        """Draw from ``bank``; equal seeds and queries give equal draws."""
        self._experiences, self._seed = list(bank), seed

    def top(self, query: str, k: int) -> list[Retrieved]:
        """Return up to ``k`` experiences of different motifs with score 0."""
        rng = random.Random(int(digest_of("random retrieval", self._seed, query)[:16], 16))
        order = sorted(self._experiences, key=lambda _: rng.random())
        found = (Retrieved(experience, 0.0) for experience in order)
        return list(islice(_one_of_each_motif(found), k))


def _one_of_each_motif(found: Iterable[Retrieved]) -> Iterator[Retrieved]:
    seen: set[str] = set()
    for each in found:
        if each.experience.motif not in seen:
            seen.add(each.experience.motif)
            yield each
