"""What attempts are told of themselves: what changed, the most telling first, within a bounded length."""

from conftest import make_spec, ok_result

from ascend_gym.core.append_log import canonical_json
from ascend_gym.core.records import CoreTimes, EvalResult, MeasureProtocol, ScalarTimes, Stall
from ascend_gym.core.status import Status
from ascend_gym.search.llm.attempts import Attempt, describe_attempts
from ascend_gym.search.llm.feedback import MOST_CHARACTERS, told_changes
from ascend_gym.search.llm.merging import Version, fastest_by_case, told_merge
from ascend_gym.suite.requests import request_for

SPEC = make_spec()
REQUEST = request_for(SPEC, SPEC.baseline, MeasureProtocol())


def _times(**given):
    zero = {name: 0.0 for name in ScalarTimes.model_fields if name.endswith("_us")}
    return ScalarTimes(**{"fetched_instructions": 0, **zero, **given})


def _result(latency_us=100.0, stalls=(), ub=None, conflicts=None, scalar=None, **profile):
    result = ok_result(REQUEST, latency_us)
    cores = CoreTimes(
        slowest_us=40.0, bank_conflict_ratios=conflicts or {}, scalar={"aiv": scalar or _times()}
    )
    cases = tuple(
        case.model_copy(
            update={
                "profile": case.profile.model_copy(update=profile),
                "cores": cores,
                "stalls": stalls,
                "ub_taken_bytes": ub,
            }
        )
        for case in result.cases
    )
    return result.model_copy(update={"cases": cases})


def _stall(line, ratio, cause="Add", **more):
    return Stall(
        pipe="aiv_vec", at=f"Mul at k.cpp:{line} `Mul(y);`", waits_for=cause, wait_ratio=ratio, **more
    )


def test_scalar_time_is_told_by_what_it_went_into():
    before = _result(scalar=_times(fetched_instructions=900, fetch_us=6.0, queue_us=2.0, code_us=1.0))
    after = _result(scalar=_times(fetched_instructions=300, fetch_us=2.0, queue_us=4.0, code_us=1.01))
    small, _ = told_changes(before, after)
    assert small.startswith(
        "small, us of a core: scalar first-run code 900 -> 300 instructions, 6.00 -> 2.00; "
    )
    assert "scalar queue calls 2.00 -> 4.00" in small
    assert "its own code" not in small  # did not change by a hundredth of the latency


def test_what_did_not_change_is_not_told():
    assert told_changes(_result(), _result()) == (
        "small, us of a core: as before",
        "large, us of a core: as before",
    )


def test_pauses_are_told_apart_by_their_text_and_split_by_what_came_before():
    before = _result(stalls=(_stall(60, 0.4),), aiv_time=10.0)
    causes = {"Add": 0.15, "DataCopy": 0.05}
    after = _result(stalls=(_stall(71, 0.2, times=8, first_ratio=0.1, by_cause=causes),), aiv_time=10.0)
    small, _ = told_changes(before, after)
    assert (
        "aiv_vec pauses before Mul at k.cpp:71 `Mul(y);` 4.00 -> 2.00, after Add 15.0%, DataCopy 5.0%"
        in small
    )
    gone, _ = told_changes(before, _result(aiv_time=10.0))
    assert "k.cpp:60 `Mul(y);` 4.00, among the longest no more" in gone


def test_ub_banks_pipes_and_blocks_are_told():
    before = _result(ub=1024, conflicts={"Mul": 0.2}, aiv_time=20.0, aiv_vec_time=8.0, block_dim=40)
    after = _result(ub=2048, conflicts={}, aiv_time=20.0, aiv_vec_time=4.0, block_dim=8)
    small, _ = told_changes(before, after)
    for said in (
        "UB taken 1024 -> 2048 bytes",
        "bank conflicts of Mul 4.00 -> 0.00",
        "vec busy 8.00 -> 4.00",
        "block dim 40 -> 8",
    ):
        assert said in small


def test_the_most_telling_comes_first_and_the_length_is_bounded():
    texts = ["x" * 200 + chr(ord("A") + number) for number in range(40)]
    stalls = tuple(_stall(f"9 {text}", 0.9 - number / 100) for number, text in enumerate(texts))
    before, after = _result(aiv_time=100.0), _result(stalls=stalls, aiv_time=100.0)
    lines = told_changes(before, after)
    assert sum(map(len, lines)) + len(lines) <= MOST_CHARACTERS
    assert "0.00 -> 90.00" in lines[0]
    assert "0.00 -> 60.00" not in "".join(lines)


def test_failed_attempts_are_told_what_their_correct_cases_did():
    slower = _result(120.0, aiv_vec_time=90.0)
    wrong = slower.model_copy(update={"status": Status.INCORRECT, "cases": slower.cases[:1]})
    assert told_changes(_result(), wrong)[0].startswith("small, us of a core: vec busy")


def test_without_split_times_nothing_is_told():
    plain = ok_result(REQUEST, 50.0)
    assert told_changes(plain, plain) == ()


def test_a_result_from_a_file_is_told_in_the_same_words():
    before, after = _result(), _result(stalls=(_stall(7, 0.3, by_cause={"b": 0.1, "a": 0.2}),), aiv_time=9.0)
    on_file = EvalResult.model_validate_json(canonical_json(after.model_dump(mode="json")))
    assert told_changes(before, on_file) == told_changes(before, after)


def test_all_but_the_last_attempts_are_told_in_a_line_each():
    before = _result()
    attempts = [
        Attempt.of(
            SPEC.baseline, before, SPEC.baseline, _result(latency_us, aiv_vec_time=60.0), answer="Why."
        )
        for latency_us in (90.0, 110.0, 80.0)
    ]
    text = describe_attempts(attempts, in_full=1)
    brief, second, *_ = text.split("\n")
    assert brief == (
        "- Attempt 1, kept: 100.00 -> 90.00 us; small 50.00 -> 45.00 us; large 200.00 -> 180.00 us; "
        "it said: Why."
    )
    assert second.startswith("- Attempt 2, not faster: 100.00 -> 110.00 us; ")
    assert "### Attempt 3, kept: 100.00 -> 80.00 us\n- its reason: Why." in text
    assert text.count("vec busy") == 2


def _with_latencies(small_us, large_us):
    result = _result()
    samples = {"small": small_us, "large": large_us}
    cases = tuple(case.model_copy(update={"samples_us": (samples[case.case_id],)}) for case in result.cases)
    return result.model_copy(update={"cases": cases})


def test_partial_gains_are_offered_with_the_winner_of_each_case():
    best, mixed = _with_latencies(10.0, 40.0), _with_latencies(9.0, 44.0)
    hardly = _with_latencies(9.9, 41.0)
    assert fastest_by_case(best, {1: hardly, 2: mixed}) == {"small": (2, 9.0), "large": (None, 40.0)}
    versions = {1: Version(SPEC.baseline, hardly), 2: Version(SPEC.baseline, mixed)}
    said = told_merge(Version(SPEC.baseline, best), versions)
    assert "small attempt 2 (9.00 us, this version 10.00); large this version (40.00 us)" in said
    assert "would take 18.97 us, this one takes 20.00" in said
    assert told_merge(Version(SPEC.baseline, best), {1: versions[1]}) == ""


def test_failed_versions_win_nothing():
    best, mixed = _with_latencies(10.0, 40.0), _with_latencies(5.0, 44.0)
    wrong = mixed.model_copy(update={"status": Status.INCORRECT})
    assert fastest_by_case(best, {1: wrong}) == {"small": (None, 10.0), "large": (None, 40.0)}
