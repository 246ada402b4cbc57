"""The bank that ships, and how well the default retrieval finds its motifs for symptoms in other words."""

import json
from pathlib import Path
from statistics import fmean

import pytest

from agents.ascend_optimizer.bank import are_kin, change_key, default_bank
from agents.ascend_optimizer.embedders import retriever_named
from agents.ascend_optimizer.noise import FLOOR
from ascend_gym.cli.agent import retriever_of
from ascend_gym.cli.methods import RunSettings
from ascend_gym.rewrites.library import RULES
from ascend_gym.suite.loader import list_operators

QUERIES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "retrieval_queries.jsonl")
    .read_text("utf-8")
    .splitlines()
]


@pytest.fixture(scope="module")
def bank():
    return default_bank()


def _answerable(bank):
    return [query for query in QUERIES if set(query["motifs"]) & set(bank.motifs)]


def test_it_holds_at_least_a_hundred_different_changes(bank):
    assert len(bank) >= 100
    assert len({change_key(experience) for experience in bank}) == len(bank)
    assert len(bank.motifs) >= 15
    assert bank.in_order().digest == bank.digest


def test_every_pair_was_validated_on_an_operator_of_the_suite(bank):
    operators = {spec.op_id for spec in list_operators("core")}
    assert {experience.operator for experience in bank} <= operators
    for experience in bank:
        assert experience.slow_us > experience.fast_us * (1 + FLOOR)
        assert (
            experience.profile_evidence or experience.speedup < 1.01
        )  # figures that changed by 1 % are told
        assert experience.provenance.slow_digest != experience.provenance.fast_digest
        assert (experience.provenance.chip, experience.provenance.model) == ("910B2", "offline")


def test_its_motifs_are_rules_that_can_be_applied(bank):
    assert set(bank.motifs) <= {rule.name for rule in RULES}


def test_at_least_forty_labelled_queries_have_their_motif_in_the_bank(bank):
    assert len({query["query"] for query in QUERIES}) == len(QUERIES)
    known = {rule.name for rule in RULES}
    for query in QUERIES:
        assert query["motifs"], query
        assert set(query["motifs"]) <= known, query
    assert len(_answerable(bank)) >= 40


def test_the_queries_are_not_the_words_of_the_bank(bank):
    told = " ".join(f"{each.bottleneck} {each.applicability}".lower() for each in bank)
    assert not [query for query in QUERIES if query["query"].lower() in told]


def test_the_default_retrieval_finds_most_motifs_among_the_first_three(bank):
    retriever = retriever_named("lexical", bank)
    hits = [
        any(found.experience.motif in query["motifs"] for found in retriever.top(query["query"], 3))
        for query in _answerable(bank)
    ]
    assert fmean(hits) >= 0.7


@pytest.mark.slow
@pytest.mark.parametrize("spec", list_operators("core"), ids=lambda spec: spec.op_id)
def test_by_default_no_operator_is_shown_its_own_experience(bank, spec):
    """Neither under its own name nor in another suite, whatever is asked."""
    for operator in (spec.op_id, f"cann-ops/{spec.name}", f"cann-ops/foreach_{spec.name}_v2", spec.op_type):
        retriever = retriever_of(RunSettings(operator=operator), operator)
        shown = [each.experience for query in QUERIES[::8] for each in retriever.top(query["query"], 8)]
        shown += [
            each.experience
            for own in bank.select(operator=spec.op_id)
            for each in retriever.top(own.bottleneck, 8)
        ]
        assert shown
        assert spec.op_id not in {experience.operator for experience in shown}


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("core/add", "cann-ops/foreach_add_list", True),
        ("core/rms_norm", "cann-ops/add_rms_norm_quant_v2", True),
        ("core/gelu", "cann-ops/fast_gelu", True),
        ("core/softmax", "cann-ops/inplace_attn_softmax", True),
        ("ForeachAdd", "core/add", True),
        ("core/muls", "cann-ops/foreach_mul_scalar", True),
        ("core/muls", "cann-ops/foreach_mul_list", True),
        ("core/silu", "generate/swish", True),
        ("core/gelu", "cann-ops/gelu_quant", True),
        ("core/muls", "core/maximum", False),
        ("core/gelu", "core/softmax", False),
        ("core/exp", "cann-ops/expand", False),
        ("core/muls", "core/add", False),
    ],
)
def test_near_twins_are_told_by_their_names(one, other, alike):
    assert are_kin(one, other) is alike
    assert are_kin(other, one) is alike


def test_what_gained_little_can_be_left_out():
    bank = default_bank()
    least = sorted(each.speedup for each in bank)[len(bank) // 2]
    gaining = bank.gaining(least)
    assert 0 < len(gaining) < len(bank)
    assert {each.digest for each in gaining} == {each.digest for each in bank if not each.speedup <= least}
