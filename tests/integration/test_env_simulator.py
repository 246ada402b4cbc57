"""The environment on the real daemon and simulator."""

import math

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

import ascend_gym  # noqa: F401  registers the environment
from ascend_gym.client import DaemonOptions, LocalDaemon
from ascend_gym.core.config import ENV_CACHE, ENV_DAEMON
from ascend_gym.env.wrappers import EpisodeRecorder, replay

FASTER = ("constexpr int32_t BUFFER_NUM = 1;", "constexpr int32_t BUFFER_NUM = 2;")
BROKEN = ("AscendC::Add(yLocal,", "AscendC::Addd(yLocal,")


def _edited(observation, edit):
    old, new = edit
    assert old in observation["kernel"]
    return {"tiling": "", "kernel": observation["kernel"].replace(old, new)}


def _play(address):
    env = gymnasium.make("AscendOp-v0", operator="add", budget=3, daemon=address)
    steps = [env.reset(seed=4)]
    env.action_space.seed(4)
    first = steps[0][0]
    for action in (_edited(first, FASTER), _edited(first, BROKEN), env.action_space.sample()):
        steps.append(env.step(action))
    env.close()
    return steps


def test_same_seed_same_episode(simulator_daemon):
    steps = _play(simulator_daemon)
    assert data_equivalence(steps, _play(simulator_daemon), exact=True)
    _, faster, broken, garbage = steps
    assert faster[1] > 0
    assert faster[1] == pytest.approx(math.log(faster[0]["speedup"][0]))
    assert [step[4]["status"] for step in steps[1:]] == ["ok", "build_error", "build_error"]
    assert "Addd" in broken[0]["diagnostics"]
    assert garbage[0]["kernel"] == faster[0]["kernel"]
    assert garbage[2]


def _journal(simulator_cache, tmp_path, workers):
    """Return what a recorder wrote of an episode on a daemon that knows no results yet."""
    cache_dir = tmp_path / f"cache_{workers}"
    cache_dir.mkdir()
    (cache_dir / "toolchain").symlink_to((simulator_cache / "toolchain").resolve())
    path = tmp_path / f"{workers}.jsonl"
    with LocalDaemon(DaemonOptions(workers=workers, cache_dir=cache_dir)) as daemon:
        options = {"operator": ["add", "gelu"], "budget": 3, "cases": 1, "daemon": daemon.address}
        env = EpisodeRecorder(gymnasium.make("AscendOp-v0", actions="rules", **options), str(path))
        observation, info = env.reset(seed=11)
        rng = np.random.default_rng(11)
        seen = [(observation, info)]
        for _ in range(2):
            seen.append(env.step(int(rng.choice(np.flatnonzero(info["action_mask"])))))
            info = seen[-1][-1]
        env.close()
        envs = gymnasium.make_vec("AscendOpTuning-v0", num_envs=4, **options)
        seen.append(envs.reset(seed=11))
        envs.action_space.seed(11)
        seen.append(envs.step(envs.action_space.sample()))
        envs.close()
        if workers > 1:
            again = gymnasium.make("AscendOp-v0", actions="rules", **options)
            assert data_equivalence(replay(again, tmp_path / "1.jsonl")[1], info, exact=True)
            again.close()
    return path.read_text(), seen


@pytest.mark.slow
def test_one_worker_and_four_give_the_same_episode(simulator_cache, tmp_path):
    one, four = (_journal(simulator_cache, tmp_path, workers) for workers in (1, 4))
    assert one[0] == four[0]
    assert data_equivalence(one[1], four[1], exact=True)


def test_rewards_by_distance_to_the_floor(simulator_daemon):
    env = gymnasium.make("AscendOp-v0", operator="add", budget=1, reward="hap", daemon=simulator_daemon)
    observation, info = env.reset()
    assert 0 < info["floor_us"] < observation["baseline_latency_us"][0]
    _, reward, *_, info = env.step(_edited(observation, FASTER))
    assert reward == pytest.approx(info["floor_us"] / info["latency_us"])
    assert info["floor_us"] / observation["baseline_latency_us"][0] < reward < 1
    env.close()


def test_check_env_passes(simulator_daemon):
    env = gymnasium.make(
        "AscendOp-v0", operator="add", daemon=simulator_daemon, budget=2, max_source_chars=8000
    )
    check_env(env.unwrapped)
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector_environments_without_an_address(mode, simulator_cache, monkeypatch):
    monkeypatch.setenv(ENV_CACHE, str(simulator_cache))
    monkeypatch.delenv(ENV_DAEMON, raising=False)
    options = {"operator": "add", "budget": 1, "cases": 1}
    envs = gymnasium.make_vec("AscendOp-v0", num_envs=2, vectorization_mode=mode, **options)
    try:
        observations, _ = envs.reset(seed=1)
        kernels = tuple(kernel.replace(*FASTER) for kernel in observations["kernel"])
        actions = {"tiling": ("", ""), "kernel": (kernels[0], "int nothing;")}
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        assert list(infos["status"]) == ["ok", "build_error"]
        np.testing.assert_allclose(rewards, np.log(observations["speedup"][:, 0]))
        assert (terminations.all(), truncations.any()) == (True, False)
    finally:
        envs.close()
