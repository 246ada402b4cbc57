"""Retrieval: the lexical embedding, what is compared with the query, order and variety of the answers."""

import numpy as np
import pytest
from experiences import make_diff, make_experience

from agents.ascend_optimizer.bank import ExperienceBank
from agents.ascend_optimizer.embedders import LexicalEmbedder, words
from agents.ascend_optimizer.retrieval import RandomRetriever, RetrievalKey, Retriever
from ascend_gym.core.errors import MisuseError

TOLD = {
    "barrier_removal": ("Pipes wait for each other at PipeBarrier<PIPE_ALL>.", "queues order the copies"),
    "tile_size": ("aiv_mte2_ratio is high with few bytes per burst.", "UB has room for longer tiles"),
    "block_dim": ("Few cores work: block_dim is below the cores of the chip.", "rows can be spread"),
    "fused_multiply": ("aiv_vec_ratio is high with many short vector instructions.", "mul then add"),
}


def _bank(operators=("core/add", "core/gelu")):
    return ExperienceBank(
        make_experience(
            operator=operator,
            motif=motif,
            bottleneck=f"{bottleneck} Seen on {operator}.",
            applicability=applicability,
            code_diff=make_diff(f"    {motif}();"),
        )
        for operator in operators
        for motif, (bottleneck, applicability) in TOLD.items()
    )


def _lexical(bank, key=RetrievalKey.BOTTLENECK):
    return LexicalEmbedder([RetrievalKey(key).text_of(each) for each in bank])


def _retriever(bank=None, **options):
    bank = _bank() if bank is None else bank
    return Retriever(bank, _lexical(bank), **options)


@pytest.mark.parametrize(
    ("query", "motif"),
    [
        ("everything stops at a pipe barrier", "barrier_removal"),
        ("mte2 busy, short bursts", "tile_size"),
        ("most cores idle", "block_dim"),
        ("vector instructions are short", "fused_multiply"),
    ],
)
def test_symptoms_find_their_motif(query, motif):
    assert _retriever().top(query, 1)[0].experience.motif == motif


def test_answers_are_the_best_first_and_of_different_motifs():
    found = _retriever().top("aiv_mte2_ratio is high", 3)
    assert len({each.experience.motif for each in found}) == 3
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert 0.0 < found[0].score <= 1.0


def test_equal_scores_come_in_the_order_of_the_bank():
    bank = _bank()
    found = _retriever(bank).top("zzzz", 10)
    assert [each.score for each in found] == [0.0] * 4
    assert [each.experience for each in found] == list(bank)[:4]


def test_a_text_is_most_like_itself():
    bank = _bank(("core/add",))
    for experience in bank:
        best = _retriever(bank, key="bottleneck").top(experience.bottleneck, 1)[0]
        assert best.experience == experience
        assert best.score == pytest.approx(1.0, abs=1e-4)


def test_the_key_decides_what_is_compared():
    bank, query = _bank(), "UB has room"
    by_symptom = Retriever(bank, _lexical(bank), "bottleneck").top(query, 1)[0]
    key = "bottleneck+applicability"
    by_both = Retriever(bank, _lexical(bank, key), key).top(query, 1)[0]
    assert by_both.experience.motif == "tile_size"
    assert by_symptom.score < by_both.score


def test_an_unknown_key_is_refused():
    with pytest.raises(MisuseError, match=r"bottleneck\+applicability"):
        _retriever(key="title")


def test_an_empty_bank_has_no_answers():
    bank = ExperienceBank()
    assert Retriever(bank, LexicalEmbedder([])).top("anything", 3) == []
    assert RandomRetriever(bank, seed=0).top("anything", 3) == []


def test_random_retrieval_follows_seed_and_query_only():
    def drawn(seed, query="slow"):
        return [each.experience.digest for each in RandomRetriever(_bank(), seed).top(query, 3)]

    assert drawn(1) == drawn(1)
    assert len({tuple(drawn(seed)) for seed in range(10)}) > 5
    assert len({tuple(drawn(1, f"slow {number}")) for number in range(10)}) > 5
    motifs = [each.experience.motif for each in RandomRetriever(_bank(), 1).top("slow", 9)]
    assert sorted(motifs) == sorted(TOLD)


def test_identifiers_are_also_their_parts():
    assert list(words("PipeBarrier<PIPE_ALL> aiv_mte2_ratio, 40 cores")) == [
        *("pipebarrier", "pipe", "barrier"),
        *("pipe_all", "pipe", "all"),
        *("aiv_mte2_ratio", "aiv", "mte2", "ratio"),
        "cores",
    ]


def test_rows_have_length_one_and_unknown_texts_are_unlike_all():
    corpus = [bottleneck for bottleneck, _ in TOLD.values()]
    embedder = LexicalEmbedder(corpus)
    vectors = embedder.embed([*corpus, "", "zzzz"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-6)
    assert np.abs(vectors[:4] @ vectors[4:].T).max() == 0.0
    assert vectors[4] @ vectors[5] == 1.0


def test_a_name_tells_the_corpus():
    assert LexicalEmbedder(["a"]).name == LexicalEmbedder(["a"]).name != LexicalEmbedder(["b"]).name
