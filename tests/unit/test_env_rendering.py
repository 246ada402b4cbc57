"""What environments show: texts and pictures, alone and side by side, and as agents ask for them by id."""

import warnings

import gymnasium
import numpy as np
import pytest
from conftest import FakeEvaluator, make_spec
from gymnasium.utils.env_checker import check_env

from ascend_gym.core.errors import MisuseError
from ascend_gym.env.op_env import AscendOpEnv
from ascend_gym.env.rendering import HEIGHT, RENDER_MODES, WIDTH
from ascend_gym.env.vector_env import AscendOpVectorEnv

IDS = ["ascend_gym:AscendOp-v0", "ascend_gym:AscendOpTuning-v0"]
GREEN, BLUE, RED = (0, 130, 60), (60, 100, 200), (200, 40, 40)


def _options(**options):
    return {"operator": make_spec(), "evaluator": FakeEvaluator(), "budget": 6, **options}


def _kernel(text):
    return {"tiling": "", "kernel": text}


def _has(picture, colour):
    return bool((picture == colour).all(axis=2).any())


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("mode", [None, *RENDER_MODES])
def test_every_render_mode_can_be_had_by_id_without_a_warning(name, mode):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(name, render_mode=mode, **_options(max_source_chars=4096))
        assert env.render_mode == mode
        check_env(env.unwrapped, skip_render_check=False)
        env.reset(seed=0)
        env.step(env.action_space.sample())
        shown = env.render()
    kinds = {None: type(None), "ansi": str, "rgb_array": np.ndarray}
    assert isinstance(shown, kinds[mode])


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("mode", ["sync", "vector_entry_point"])
@pytest.mark.parametrize("render_mode", RENDER_MODES)
def test_vector_environments_show_each_episode(name, mode, render_mode):
    envs = gymnasium.make_vec(name, 2, mode, render_mode=render_mode, **_options())
    envs.reset(seed=0)
    assert envs.render_mode == render_mode
    shown = envs.render()
    single = gymnasium.make(name, render_mode=render_mode, **_options())
    single.reset(seed=0)
    assert isinstance(shown, tuple)
    assert [np.array_equal(each, single.render()) for each in shown] == [True, True]
    envs.close()


def test_without_a_mode_nothing_is_shown():
    envs = AscendOpVectorEnv(2, **_options())
    envs.reset()
    assert envs.render() is None


@pytest.mark.parametrize("make", [AscendOpEnv, lambda *args, **options: AscendOpVectorEnv(2, **options)])
def test_modes_that_do_not_exist_are_refused_by_name(make):
    with pytest.raises(MisuseError, match="None or one of ansi, rgb_array, got 'human'"):
        make(**_options(render_mode="human"))


def test_the_picture_tells_new_incumbents_slower_candidates_and_failures_apart():
    env = AscendOpEnv(**_options(render_mode="rgb_array"))
    before = env.render()
    assert (before.shape, before.dtype) == ((HEIGHT, WIDTH, 3), np.uint8)
    env.reset()
    seen = [env.render()]
    for kernel in ("// latency: 50", "// latency: 90", "// status: timeout"):
        env.step(_kernel(kernel))
        seen.append(env.render())
    assert [[_has(picture, colour) for colour in (GREEN, BLUE, RED)] for picture in seen] == [
        [False, False, False],
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert not np.array_equal(before, seen[0])


def test_faster_is_drawn_lower():
    env = AscendOpEnv(**_options(render_mode="rgb_array"))
    env.reset()
    rows = []
    for latency_us in (80, 40):
        env.step(_kernel(f"// latency: {latency_us}"))
        rows.append(np.flatnonzero((env.render() == GREEN).all(axis=2).any(axis=1)))
    assert rows[1].max() - rows[1].min() > rows[0].max() - rows[0].min()


@pytest.mark.parametrize("latency_us", [1e-6, 100.0, 1e9])
def test_any_latency_fits_the_picture(latency_us):
    env = AscendOpEnv(**_options(render_mode="rgb_array", budget=1))
    env.reset()
    env.step(_kernel(f"// latency: {latency_us:.7f}"))
    assert env.render().shape == (HEIGHT, WIDTH, 3)


def test_pictures_are_what_wrappers_of_gymnasium_collect():
    env = gymnasium.make(IDS[0], render_mode="rgb_array_list", **_options())
    env.reset()
    env.step(_kernel("// latency: 50"))
    assert [frame.shape for frame in env.render()] == [(HEIGHT, WIDTH, 3)] * 2
