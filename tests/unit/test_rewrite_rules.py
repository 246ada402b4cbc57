"""What holds for every rule of the library."""

from pathlib import Path

import pytest
from conftest import make_candidate
from rewritten import HOST, KERNEL, in_function, rule_named

from ascend_gym.core.errors import MisuseError
from ascend_gym.rewrites.library import REWINDS, RULES
from ascend_gym.rewrites.rule import Side

STATEMENTS = """\
DataCopyPad(yGm[i], y, {1, (uint32_t)(n * 4), 0, 0, 0});
LocalTensor<float> t = q.AllocTensor<float>();
Muls(t, a, s, n);
PipeBarrier<PIPE_ALL>();
Add(d, d, t, n);
q.FreeTensor(t);
"""


def test_rules_have_names_preconditions_and_inverses_that_exist():
    every = (*RULES, *REWINDS)
    assert len({rule.name for rule in every}) == len(every)
    assert len(RULES) >= 30
    for rule in (*RULES, *REWINDS):
        assert len(rule.precondition) > 40
        assert rule.effect.pipes
        if rule.inverse is not None:
            assert rule_named(rule.inverse).family is rule.family


SIMULATED = ("test_rules_simulator.py", "test_rules_compute_simulator.py")
NOT_SIMULATED = {
    "aligned_copy": "DataCopy and DataCopyPad cost the same on the simulator",
    "core_parts": "needs a Matmul object with constant parts of cores, which no operator of ours has",
    "shared_buffer_count": "the change of buffer_count, in host and kernel at once",
}


def test_each_rule_is_shown_to_save_time_on_the_simulator():
    folder = Path(__file__).parents[1] / "integration"
    rows = "".join((folder / name).read_text("utf-8") for name in SIMULATED)
    assert {rule.name for rule in RULES if f'"{rule.name}"' not in rows} == NOT_SIMULATED.keys()


EXAMPLES = [(rule, *example) for rule in (*RULES, *REWINDS) for example in rule.examples]


@pytest.mark.parametrize(("rule", "before", "after"), EXAMPLES, ids=lambda value: getattr(value, "name", ""))
def test_a_rule_does_what_its_examples_say_and_its_inverse_can_undo_it(rule, before, after):
    if rule.side is Side.TILING:
        candidate, expected = make_candidate(before, ""), make_candidate(after, "")
    else:
        candidate, expected = (make_candidate("", in_function(text)) for text in (before, after))
    (site,) = rule.sites(candidate)
    assert rule.apply(candidate, site, site.choices[0]).texts == expected.texts
    if rule.inverse is not None:
        undone = _ways(rule_named(rule.inverse), expected)
        assert candidate in undone or any(expected in _ways(rule, each) for each in undone)


def _ways(rule, candidate):
    return [rule.apply(candidate, site, choice) for site in rule.sites(candidate) for choice in site.choices]


def test_choices_of_rewinds_are_never_forward():
    candidate = make_candidate("constexpr int TILE = 16;\n", in_function(STATEMENTS))
    ways = [choice for rule in REWINDS for site in rule.sites(candidate) for choice in site.choices]
    assert len(ways) >= 5
    assert not any(choice.forward for choice in ways)


def test_rules_edit_the_side_they_name():
    tiling = "constexpr int TILE = 16;\nconstexpr int BUFFER_NUM = 1;\nconst int BLOCK_DIM = 8;\n"
    kernel = "constexpr int TILE = 16;\nconstexpr int BUFFER_NUM = 1;\nconstexpr int CHUNK = 8;\n"
    candidate = make_candidate(tiling, kernel + in_function(STATEMENTS))
    folder = {Side.TILING: {HOST}, Side.KERNEL: {KERNEL}, Side.BOTH: {HOST, KERNEL}}
    found = set()
    for rule in (*RULES, *REWINDS):
        for site in rule.sites(candidate):
            found.add(rule.name)
            for choice in site.choices:
                assert {edit.path for edit in choice.edits} == folder[rule.side]
    assert {"shared_tile_size", "kernel_tile_size", "block_dim", "aligned_copy", "axpy"} <= found


def test_applying_a_choice_of_another_site_or_candidate_is_refused():
    rule = rule_named("tile_size")
    candidate = make_candidate("constexpr int TILE = 16;\n", "")
    (site,) = rule.sites(candidate)
    (other,) = rule.sites(make_candidate("\n\nconstexpr int TILE = 1024;\n", ""))
    with pytest.raises(MisuseError, match="no choice of"):
        rule.apply(candidate, site, other.choices[0])
    with pytest.raises(MisuseError, match="another candidate"):
        rule.apply(candidate, other, other.choices[0])
