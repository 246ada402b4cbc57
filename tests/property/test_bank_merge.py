"""Banks are sets: adding in any order, merging and saving lose nothing and double nothing."""

from pathlib import Path
from tempfile import TemporaryDirectory

from experiences import make_diff, make_experience
from hypothesis import given
from hypothesis import strategies as st

from agents.ascend_optimizer.bank import ExperienceBank, change_key

EXPERIENCES = st.builds(
    make_experience,
    operator=st.sampled_from(["core/add", "core/gelu"]),
    motif=st.sampled_from(["barrier_removal", "tile_size"]),
    slow_us=st.floats(10.5, 100.0),
    title=st.text(min_size=1, max_size=5),
    chip=st.sampled_from(["910B2", "910B4"]),
    code_diff=st.sampled_from([make_diff(), make_diff("    Wait(1);"), make_diff("    Wait(2);")]),
)
MANY = st.lists(EXPERIENCES, max_size=8)


def _contents(bank):
    return {change_key(each): each for each in bank}


@given(MANY, MANY)
def test_merging_is_commutative(first, second):
    one, other = ExperienceBank(first), ExperienceBank(second)
    assert one.merge(other).digest == other.merge(one).digest
    assert _contents(one.merge(other)) == _contents(ExperienceBank([*first, *second]))


@given(MANY, MANY, MANY)
def test_merging_is_associative(first, second, third):
    a, b, c = map(ExperienceBank, (first, second, third))
    assert a.merge(b).merge(c).digest == a.merge(b.merge(c)).digest


@given(MANY)
def test_merging_is_idempotent(experiences):
    bank = ExperienceBank(experiences)
    assert bank.merge(bank).digest == bank.merge(ExperienceBank()).digest == bank.in_order().digest


@given(MANY)
def test_the_strongest_evidence_stays(experiences):
    kept = _contents(ExperienceBank(experiences))
    assert set(kept) == {change_key(each) for each in experiences}
    for each in experiences:
        assert kept[change_key(each)].speedup >= each.speedup


@given(MANY)
def test_files_give_back_what_was_added(experiences):
    with TemporaryDirectory() as folder:
        appended, saved = Path(folder) / "appended.jsonl", Path(folder) / "saved.jsonl"
        bank = ExperienceBank.open(appended)
        for experience in experiences:
            bank.add(experience)
        bank.close()
        bank.save(saved)
        assert ExperienceBank.load(appended).digest == bank.digest == ExperienceBank.load(saved).digest
