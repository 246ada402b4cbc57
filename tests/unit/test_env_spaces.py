import copy
import pickle

import numpy as np
import pytest
from conftest import FakeEvaluator, make_candidate, make_profile, make_spec
from gymnasium.spaces import flatten, unflatten
from gymnasium.vector.utils import (
    batch_space,
    create_empty_array,
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)

from ascend_gym.core.records import Diagnostic, MeasureProtocol, Phase, failed_result
from ascend_gym.core.status import Status
from ascend_gym.env.actions import SourceActions
from ascend_gym.env.episode import Episode
from ascend_gym.env.evaluation import evaluate
from ascend_gym.env.text_observation import (
    PROFILE_FIELDS,
    STATUSES,
    diagnostics_text,
    observation_space,
    observe,
    profile_vector,
)
from ascend_gym.env.unicode_text import UNICODE, UnicodeText
from ascend_gym.suite.requests import request_for


def _request(kernel="// kernel"):
    spec = make_spec()
    return request_for(spec, make_candidate(kernel=kernel), MeasureProtocol())


def test_unicode_has_every_code_point_but_the_surrogates():
    assert len(UNICODE) == 0x110000 - 0x800
    assert UNICODE[0xD7FF] == "\ud7ff"
    assert UNICODE[0xD800] == "\ue000"
    assert UNICODE[-1] == "\U0010ffff"
    assert UNICODE[1:3] == ("\x01", "\x02")
    assert "\ud800" not in UNICODE
    assert "ab" not in UNICODE
    assert UNICODE.count("x") == 1
    with pytest.raises(IndexError):
        UNICODE[len(UNICODE)]
    with pytest.raises(ValueError, match="not one Unicode character"):
        UNICODE.index("\ud800")
    with pytest.raises(ValueError, match="is not between"):
        UNICODE.index("a", 0, 10)


@pytest.mark.parametrize("text", ["", "// 对齐到 32 字节", "emoji 🚀 𠮷", "\r\n\t\0"])
def test_text_takes_any_unicode(text):
    assert UnicodeText(32).contains(text)


@pytest.mark.parametrize("text", ["x" * 33, "\ud800", b"bytes", 3, None])
def test_text_refuses(text):
    assert not UnicodeText(32).contains(text)


def test_text_respects_its_shortest_length():
    assert not UnicodeText(5, min_length=2).contains("a")


def test_text_samples_are_members_and_follow_the_seed():
    first, second = UnicodeText(500, seed=3), UnicodeText(500, seed=3)
    samples = [first.sample() for _ in range(20)]
    assert samples == [second.sample() for _ in range(20)]
    assert all(first.contains(sample) for sample in samples)
    assert len({len(sample) for sample in samples}) > 1


def test_text_has_no_masks():
    with pytest.raises(ValueError, match="without mask"):
        UnicodeText(5).sample(mask=(3, None))


def test_text_equality_is_of_lengths():
    assert UnicodeText(5) == UnicodeText(5)
    assert UnicodeText(5) != UnicodeText(6)
    assert UnicodeText(5) != "text"


def test_text_copies_are_small():
    space = UnicodeText(65536)
    assert len(pickle.dumps(space)) < 1000
    assert pickle.loads(pickle.dumps(space)) == space
    assert copy.deepcopy(space) == space


def test_text_works_with_the_vector_tools():
    assert ("ab", "🚀") in batch_space(UnicodeText(5), 2)
    assert create_empty_array(UnicodeText(5), 2) == ("", "")


def test_texts_in_shared_memory_are_read_each_time():
    space = UnicodeText(4)
    memory = create_shared_memory(space, n=2)
    texts = read_from_shared_memory(space, memory, n=2)
    assert copy.deepcopy(texts) == ("", "")
    write_to_shared_memory(space, 1, "a🚀对", memory)
    assert copy.deepcopy(texts) == ("", "a🚀对")
    write_to_shared_memory(space, 1, "b", memory)
    assert (len(texts), texts[0], texts[1]) == (2, "", "b")


def test_text_flattens_and_back():
    space = UnicodeText(8)
    assert unflatten(space, flatten(space, "a🚀对")) == "a🚀对"


def test_characters_is_one_string_in_the_order_of_their_numbers():
    characters = UnicodeText(1).characters
    assert len(characters) == len(UNICODE)
    assert all(characters[at] == UNICODE[at] for at in (0, 0x41, 0xD7FF, 0xD800, len(UNICODE) - 1))
    assert next(iter(UNICODE)) == "\0"


def test_profile_is_the_mean_over_cases_in_field_order():
    result = evaluate(FakeEvaluator(), _request("// latency: 10"))
    vector = profile_vector(result)
    assert vector.dtype == np.float64
    assert vector.shape == (len(PROFILE_FIELDS),)
    assert vector[PROFILE_FIELDS.index("task_duration_us")] == pytest.approx((5 + 20) / 2)
    assert vector[PROFILE_FIELDS.index("block_dim")] == make_profile(1.0).block_dim


def test_profile_of_a_failure_is_zero():
    result = evaluate(FakeEvaluator(), _request("// status: timeout"))
    assert not profile_vector(result).any()


def test_diagnostics_text_is_cut_and_has_no_surrogates():
    message = "bad \ud800 byte " + "x" * 100
    diagnostic = Diagnostic(phase=Phase.BUILD_KERNEL, message=message)
    text = diagnostics_text(failed_result(_request(), Status.BUILD_ERROR, diagnostic), 40)
    assert text.startswith("[build_kernel] bad \ufffd byte xxx")
    assert len(text) == 40
    assert UnicodeText(40).contains(text)


def test_observation_is_inside_its_space_and_shares_nothing():
    spec = make_spec()
    result = evaluate(FakeEvaluator(), request_for(spec, spec.baseline, MeasureProtocol()))
    episode = Episode.start(spec, 3, result)
    space = observation_space(3, 1000, 100)
    first, second = observe(episode, 100), observe(episode, 100)
    assert space.contains(first)
    assert STATUSES[first["status"]] is Status.OK
    assert first["best_latency_us"] == pytest.approx(100.0)
    assert first["budget_left"] == 3
    arrays = [name for name, value in first.items() if isinstance(value, np.ndarray)]
    assert arrays
    assert not any(np.shares_memory(first[name], second[name]) for name in arrays)


def test_all_bounds_are_finite():
    space = observation_space(3, 1000, 100)
    boxes = [space[name] for name in ("latency_us", "speedup", "profile")]
    assert all(np.isfinite(box.high).all() and np.isfinite(box.low).all() for box in boxes)


def test_action_space_holds_empty_and_full_texts():
    space = SourceActions(10).space
    assert space.contains({"tiling": "", "kernel": "k" * 10})
    assert not space.contains({"tiling": "", "kernel": "k" * 11})
