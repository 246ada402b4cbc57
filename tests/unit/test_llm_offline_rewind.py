"""The offline model as the inverse agent: one motif, named by the rule that would bring it back."""

import pytest
from conftest import make_spec

from ascend_gym.core.protocols import Message
from ascend_gym.core.records import Candidate
from ascend_gym.rewrites.answer import candidate_from_answer
from ascend_gym.rewrites.library import REWINDS, RULES
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.llm.prompts import render_sources

SPEC = make_spec(
    tiling="constexpr uint32_t TILE_LENGTH = 4096;\n",
    kernel="""\
constexpr int32_t BUFFER_NUM = 2;
class K {
    void Compute(uint32_t n)
    {
        Mul(d, a, b, n);
        Add(d, d, c, n);
        Add(d, d, c, n);
    }
};
""",
)


def _answer(seed=0, taken=(), in_vain=(), known=(), sources=None):
    lists = (
        ("Taken out already", taken),
        ("Tried in vain", in_vain),
        ("Known from other trajectories", known),
    )
    told = "\n\n".join(f"## {title}\n" + ("\n".join(lines) or "- nothing") for title, lines in lists)
    prompt = f"# Task: rewind\n\n{told}\n\n{render_sources(SPEC.baseline) if sources is None else sources}"
    return OfflineModel().complete([Message("user", prompt)], seed=seed, max_tokens=9999, deadline_s=1).text


def _line(answer):
    motif, site = answer.split("\n")[:2]
    return f"- {motif.removeprefix('Motif: ')}: {site.removeprefix('Site: ')}"


def _motif(answer):
    return answer.split("\n")[0].removeprefix("Motif: ")


@pytest.mark.parametrize("seed", range(8))
def test_an_answer_names_a_rule_and_changes_the_operator(seed):
    answer = _answer(seed)
    candidate = candidate_from_answer(answer, SPEC.baseline)
    assert isinstance(candidate, Candidate)
    assert candidate != SPEC.baseline
    assert _motif(answer) in {rule.name for rule in RULES}


def test_a_rewind_goes_by_the_name_of_the_rule_that_it_undoes():
    undone = {rule.inverse for rule in RULES}
    assert {rule.name for rule in REWINDS} <= undone
    motifs = {_motif(_answer(seed)) for seed in range(40)}
    assert {"tile_size", "full_barrier_removal"} <= motifs
    assert not motifs & {rule.name for rule in REWINDS}


def test_what_was_taken_out_or_tried_is_not_repeated_until_nothing_is_left():
    seen = []
    for number in range(200):
        half = len(seen) // 2
        answer = _answer(number, taken=seen[:half], in_vain=seen[half:])
        if not answer.startswith("Motif: "):
            break
        assert _line(answer) not in seen
        seen.append(_line(answer))
    assert answer == "I find no further motif to take out of these sources."
    assert len(seen) == len(set(seen)) > 10
    assert any("(number 2)" in line for line in seen)


def test_what_is_known_comes_seldom():
    first = _line(_answer(5))
    motif = first.removeprefix("- ").partition(":")[0]
    lines = [_line(_answer(seed)) for seed in range(30)]
    known = {line for line in lines if line.startswith(f"- {motif}:")}
    again = [_line(_answer(seed, known=sorted(known))) for seed in range(30)]
    assert sum(line in known for line in again) < sum(line in known for line in lines)


def test_sites_do_not_move_with_lines_and_numbers():
    shifted = SPEC.baseline.rewritten(tiling="\n\nconstexpr uint32_t TILE_LENGTH = 2048;\n")
    line = "- tile_size: op_host/toy.cpp TILE_LENGTH = N"
    answers = [_answer(seed, taken=[line], sources=render_sources(shifted)) for seed in range(20)]
    assert line not in {_line(answer) for answer in answers}
    assert line in {_line(_answer(seed, sources=render_sources(shifted))) for seed in range(20)}


def test_the_same_seed_gives_the_same_answer():
    assert _answer(3) == _answer(3)
    assert len({_answer(seed) for seed in range(10)}) > 4


def test_a_prompt_without_an_operator_gets_words():
    assert "nothing to rewind" in _answer(sources="no files here")
