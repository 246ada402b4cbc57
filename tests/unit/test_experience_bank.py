"""The experience bank: what one experience is, what stays of two, and files that survive crashes."""

import json

import pytest
from experiences import make_diff, make_experience

from agents.ascend_optimizer.bank import ExperienceBank, changed_lines, to_markdown
from agents.ascend_optimizer.experience import ProfileChange
from ascend_gym.core.errors import MisuseError


def test_a_bank_is_read_back_as_it_was_written(tmp_path):
    path = tmp_path / "bank.jsonl"
    bank = ExperienceBank.open(path)
    assert bank.add(make_experience())
    assert bank.add(make_experience(operator="core/other"))
    bank.close()
    assert list(ExperienceBank.load(path)) == list(bank)
    assert ExperienceBank.load(path).digest == bank.digest


@pytest.mark.parametrize(
    ("other", "kept"),
    [
        ({"title": "The same, told again"}, 1),
        ({"motif": "another_name", "family": "kernel.another_name"}, 1),
        ({"code_diff": make_diff("        Wait( );")}, 1),
        ({"chip": "910B4"}, 2),
        ({"operator": "core/other"}, 2),
        ({"code_diff": make_diff("    Sync();")}, 2),
        ({"code_diff": make_diff(path="op_host/toy.cpp")}, 2),
        ({"code_diff": make_diff().replace("Add(d, a, b, n)", "Mul(d, a, b, n)")}, 2),
    ],
)
def test_one_change_of_one_operator_is_one_experience(other, kept):
    assert len(ExperienceBank([make_experience(), make_experience(**other)])) == kept


def test_steps_of_one_constant_are_one_change():
    halves = [
        make_diff().replace("-    Wait();", f"-constexpr int T = {tile};\n+constexpr int T = {2 * tile};")
        for tile in (1024, 2048)
    ]
    assert changed_lines(halves[0]) == changed_lines(halves[1])


def test_lines_far_from_the_change_do_not_count():
    far = make_diff().replace(" void Compute()", " void Else()")
    assert changed_lines(far) == changed_lines(make_diff())
    assert "+++b/op_kernel/toy.cpp" in changed_lines(far)[0]


def test_the_larger_effect_stays_and_the_file_keeps_both(tmp_path):
    path = tmp_path / "bank.jsonl"
    bank = ExperienceBank.open(path)
    assert bank.add(make_experience(slow_us=12.0))
    assert bank.add(make_experience(slow_us=15.0))
    assert not bank.add(make_experience(slow_us=13.0))
    bank.close()
    assert [each.slow_us for each in ExperienceBank.load(path)] == [15.0]
    assert len(path.read_text().splitlines()) == 2


def test_a_torn_last_line_is_left_out_and_removed_by_the_next_writer(tmp_path):
    path = tmp_path / "bank.jsonl"
    ExperienceBank([make_experience()]).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:100])
    assert len(ExperienceBank.load(path)) == 1
    assert path.read_bytes() == whole + whole[:100]
    bank = ExperienceBank.open(path)
    bank.add(make_experience(operator="core/other"))
    bank.close()
    assert len(ExperienceBank.load(path)) == 2


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda record: record.pop("bottleneck"), "bottleneck: Field required"),
        (lambda record: record.update(fast_us=99.0), "must be faster"),
        (lambda record: record.update(version=2), "version: Input should be 1"),
        (lambda record: record.update(extra=1), "extra"),
    ],
)
def test_a_bad_line_is_named(tmp_path, change, complaint):
    path = tmp_path / "bank.jsonl"
    ExperienceBank([make_experience()]).save(path)
    record = json.loads(path.read_text())
    change(record)
    path.write_text(path.read_text() + json.dumps(record) + "\n")
    with pytest.raises(MisuseError, match=f"bank.jsonl:2: no experience: .*{complaint}"):
        ExperienceBank.load(path)
    with pytest.raises(MisuseError, match=":2:"):
        ExperienceBank.open(path)


def test_what_is_no_json_is_named(tmp_path):
    path = tmp_path / "bank.jsonl"
    path.write_text("hello\n")
    with pytest.raises(MisuseError, match=r":1: no experience: the line: Invalid JSON"):
        ExperienceBank.load(path)


def test_a_missing_bank_says_how_to_build_one(tmp_path):
    with pytest.raises(MisuseError, match="bank build"):
        ExperienceBank.load(tmp_path / "bank.jsonl")


def test_selecting_by_motif_and_operator():
    bank = ExperienceBank(
        [
            make_experience(),
            make_experience(operator="core/other"),
            make_experience(operator="core/other", motif="fused", code_diff=make_diff("    Mul();")),
        ]
    )
    assert bank.motifs == ["barrier_removal", "fused"]
    assert len(bank.select(motif="barrier_removal")) == 2
    assert len(bank.select(operator="other")) == len(bank.select(operator="core/other")) == 2
    assert len(bank.select(operator="other", motif="fused")) == 1
    assert len(bank.select(motif="unheard")) == 0


def test_the_parts_of_the_profile_that_a_motif_affects_are_named():
    def changes(*metrics):
        return tuple(ProfileChange(metric=metric, before=2.0, after=1.0) for metric in metrics)

    waiting = make_experience(profile_evidence=changes("task_duration_us", "aiv_time", "aiv_vec_ratio"))
    assert waiting.metric_groups == ()
    assert "- affects: waiting alone" in to_markdown(ExperienceBank([waiting]))
    moved = changes("gm_to_ub_bytes_per_instruction", "aiv_vec_time", "aic_fixpipe_time", "block_dim")
    told = make_experience(profile_evidence=moved)
    assert told.metric_groups == ("launch", "vector", "reads", "results")
    assert "- affects: launch, vector, reads, results" in to_markdown(ExperienceBank([told]))
