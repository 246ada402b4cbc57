"""Embedders by name, and the sentence model's arithmetic on weights of our own."""

import json
import math
from typing import ClassVar

import numpy as np
import pytest
from experiences import make_diff, make_experience

from agents.ascend_optimizer import sentence_model
from agents.ascend_optimizer.bank import ExperienceBank
from agents.ascend_optimizer.embedders import remembering, retriever_named, vectors_for
from agents.ascend_optimizer.sentence_model import SentenceEmbedder, encoded, read_safetensors
from ascend_gym.core.errors import MisuseError

WIDTH, HIDDEN = 24, 48

BANK = ExperienceBank(
    make_experience(motif=motif, bottleneck=text, applicability="", code_diff=make_diff(f"    {motif}();"))
    for motif, text in {
        "tile_size": "Tiles are small, copies short: MTE2 spends its time on starting.",
        "block_dim": "Few cores work and most of the chip idles.",
        "vector_arithmetic": "A scalar loop computes element by element.",
    }.items()
)


def _weights(seed=0):
    """Return small random weights in the layout of the model."""
    random = np.random.default_rng(seed)

    def tensor(*shape):
        return random.normal(0.0, 0.3, shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": tensor(10, WIDTH),
        "embeddings.position_embeddings.weight": tensor(16, WIDTH),
        "embeddings.token_type_embeddings.weight": tensor(2, WIDTH),
    }
    for norm in ("embeddings.LayerNorm", *(f"encoder.layer.{n}.{part}" for n in range(6) for part in _NORMS)):
        weights |= {f"{norm}.weight": 1.0 + tensor(WIDTH), f"{norm}.bias": tensor(WIDTH)}
    for number in range(6):
        for name, (rows, columns) in _DENSE.items():
            path = f"encoder.layer.{number}.{name}"
            weights |= {f"{path}.weight": tensor(rows, columns), f"{path}.bias": tensor(rows)}
    return weights


_NORMS = ("attention.output.LayerNorm", "output.LayerNorm")
_DENSE = {
    **{f"attention.self.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value")},
    "attention.output.dense": (WIDTH, WIDTH),
    "intermediate.dense": (HIDDEN, WIDTH),
    "output.dense": (WIDTH, HIDDEN),
}


def _slowly_encoded(weights, ids):
    """The encoder written out token by token and head by head, in double precision."""

    def w(name):
        return weights[name].astype(np.float64)

    def norm(name, rows):
        centred = [row - row.mean() for row in rows]
        return [
            w(f"{name}.weight") * row / math.sqrt((row**2).mean() + 1e-12) + w(f"{name}.bias")
            for row in centred
        ]

    def dense(name, rows):
        return [w(f"{name}.weight") @ row + w(f"{name}.bias") for row in rows]

    words, places, kinds = (
        w(f"embeddings.{name}_embeddings.weight") for name in ("word", "position", "token_type")
    )
    x = norm("embeddings.LayerNorm", [words[token] + places[at] + kinds[0] for at, token in enumerate(ids)])
    size = WIDTH // 12
    for number in range(6):
        layer = f"encoder.layer.{number}"
        query, key, value = (dense(f"{layer}.attention.self.{name}", x) for name in ("query", "key", "value"))
        mixed = [np.zeros(WIDTH) for _ in x]
        for head in range(12):
            part = slice(head * size, (head + 1) * size)
            for at, row in enumerate(query):
                shares = np.array([math.exp(row[part] @ other[part] / math.sqrt(size)) for other in key])
                mixed[at][part] = sum(s * v[part] for s, v in zip(shares / shares.sum(), value, strict=True))
        attended = dense(f"{layer}.attention.output.dense", mixed)
        x = norm(f"{layer}.attention.output.LayerNorm", [a + b for a, b in zip(x, attended, strict=True)])
        hidden = dense(f"{layer}.intermediate.dense", x)
        hidden = [np.array([v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in row]) for row in hidden]
        out = dense(f"{layer}.output.dense", hidden)
        x = norm(f"{layer}.output.LayerNorm", [a + b for a, b in zip(x, out, strict=True)])
    mean = sum(x) / len(x)
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("ids", [[1], [3, 1, 4, 1, 5], list(range(10))])
def test_the_encoder_is_what_the_formulas_say(ids):
    weights = _weights()
    np.testing.assert_allclose(encoded(weights, ids), _slowly_encoded(weights, ids), atol=2e-5)


def test_safetensors_are_read(tmp_path):
    data = np.arange(6, dtype="<f4").reshape(2, 3)
    header = {
        "__metadata__": {"format": "pt"},
        "ids": {"dtype": "I64", "shape": [1], "data_offsets": [24, 32]},
        "x": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    }
    text = json.dumps(header).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + data.tobytes() + bytes(8))
    read = read_safetensors(path)
    assert list(read) == ["x"]
    np.testing.assert_array_equal(read["x"], data)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(sentence_model, "find_spec", lambda name: None)
    with pytest.raises(MisuseError, match="pip install tokenizers"):
        SentenceEmbedder()


def test_the_real_sentence_model_finds_what_is_meant():
    pytest.importorskip("tokenizers", reason="the embedder minilm is not installed")
    if sentence_model.find_spec(sentence_model.WEIGHTS_PACKAGE) is None:
        pytest.skip(f"the embedder minilm is not installed: {sentence_model.INSTALL}")
    found = retriever_named("minilm", BANK).top("most processors have nothing to do", 1)
    assert found[0].experience.motif == "block_dim"


def test_the_lexical_embedder_is_fitted_to_the_bank():
    found = retriever_named("lexical", BANK, "bottleneck").top("scalar loops, element by element", 1)
    assert found[0].experience.motif == "vector_arithmetic"


class Endpoint:
    """Embeds by counting letters; keeps what it was asked."""

    asked: ClassVar[list] = []

    def __init__(self, model, *, base_url, api_key, limits):
        self.model, self.base_url = model, base_url

    @property
    def name(self):
        return f"openai:{self.model}"

    def embed(self, texts):
        Endpoint.asked += texts
        rows = np.array([[text.count(letter) + 1 for letter in "abcdefgh"] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_any_other_name_is_a_model_of_the_endpoint_and_no_text_is_asked_for_twice(tmp_path, monkeypatch):
    monkeypatch.setattr("ascend_gym.search.llm.embeddings.OpenAiEmbedder", Endpoint)
    monkeypatch.setattr(Endpoint, "asked", [])
    endpoint = remembering(tmp_path / "v.jsonl", "http://here")
    first = retriever_named("letters", BANK, endpoint=endpoint).top("idle", 2)
    assert len(Endpoint.asked) == len(BANK) + 1
    assert retriever_named("letters", BANK, endpoint=endpoint).top("idle", 2) == first
    assert len(Endpoint.asked) == len(BANK) + 1
    other = remembering(tmp_path / "other.jsonl", "http://here")
    retriever_named("letters", BANK, endpoint=other).top("idle", 2)
    assert len(Endpoint.asked) == 2 * (len(BANK) + 1)


def test_vectors_lie_beside_a_bank_and_in_the_cache_for_the_one_that_ships(tmp_path, monkeypatch):
    monkeypatch.setenv("ASCEND_GYM_CACHE", str(tmp_path / "cache"))
    assert vectors_for(tmp_path / "my.jsonl") == tmp_path / "my.vectors.jsonl"
    assert vectors_for(None).parent == tmp_path / "cache"
