"""The embedders by name, and retrieval with one of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agents.ascend_optimizer.bank import ExperienceBank
from agents.ascend_optimizer.lexical import LexicalEmbedder
from agents.ascend_optimizer.retrieval import RetrievalKey, Retriever, retrieval_key
from ascend_gym.core.config import cache_root
from ascend_gym.core.protocols import Embedder
from ascend_gym.search.llm import embedder_named
from ascend_gym.search.llm.cassette import CassetteMode

LEXICAL = "lexical"
SENTENCE = "minilm"


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
        from agents.ascend_optimizer.sentence_model import SentenceEmbedder

        return SentenceEmbedder()
    return endpoint(name)
