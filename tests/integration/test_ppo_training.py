"""PPO with the real RLlib on a real daemon with a fake backend: train, resume, search."""

import importlib.util
import json
import os
import signal

import pytest
from fake_backend import make_operator

from ascend_gym.cli import train
from ascend_gym.client import DaemonOptions, LocalDaemon
from baselines.ppo_checkpoints import last_checkpoint, policy_path, read_progress

if importlib.util.find_spec("ray") is None:  # not imported here: the command sets it up first
    pytest.skip("Ray is not installed: extra [train]", allow_module_level=True)
torch = pytest.importorskip("torch", reason="PyTorch is not installed: extra [train]")

TILING = (
    "constexpr uint32_t TILE_LENGTH = 1024;\n"
    "static ge::graphStatus TilingFunc(gert::TilingContext* context) { return 0; }\n"
)
KERNEL = (
    "constexpr int32_t BUFFER_NUM = 1;\nconstexpr int32_t TILE = 64;\nvoid Compute()\n{\n"
    "    Exp(y, x, n);\n    PipeBarrier<PIPE_ALL>();\n    Ln(y, y, n);\n    PipeBarrier<PIPE_ALL>();\n}\n"
    'extern "C" __global__ __aicore__ void double_it(GM_ADDR x, GM_ADDR y) {}\n'
)


@pytest.fixture
def operator(tmp_path):
    folder = tmp_path / "double_it"
    make_operator(folder, TILING, KERNEL)
    return folder


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    with LocalDaemon(DaemonOptions(backend="fake_backend:DigestBackend", workers=1, cache_dir=cache)) as one:
        yield one.address


def _weights(folder):
    return torch.load(policy_path(folder), weights_only=True)["weights"]


def test_a_training_goes_on_where_it_was_interrupted_and_its_policy_searches(
    run, operator, daemon, tmp_path, monkeypatch
):
    out = tmp_path / "training"
    options = ("--op-dir", operator, "--budget", 2, "--daemon", daemon, "--out", out)
    with monkeypatch.context() as patched:
        patched.setattr(train, "_line", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        status, _, messages = run("train", *options, "--evaluations", 1000)
    assert status == 130
    assert f"--resume {out}" in messages
    before = _weights(out)

    status, printed, messages = run("train", "--resume", out, "--daemon", daemon, "--evaluations", 45)
    assert status == 0
    assert printed.startswith("40 evaluations in 2 iterations")
    assert messages.count("iteration 2: 40 of 45 evaluations") == 1
    assert list((out / "tensorboard").glob("events.out.tfevents.*"))
    progress = read_progress(last_checkpoint(out))
    assert (progress.iterations, progress.evaluations) == (2, 40)
    assert progress.mean_speedup >= 1
    after = _weights(out)
    assert any(not torch.equal(before[name], after[name]) for name in before)

    search = ("--op-dir", operator, "--method", "ppo", "--checkpoint", out, "--daemon", daemon)
    status, printed, _ = run("optimize", "double_it", *search, "--budget", 3, "--json")
    assert status == 0
    summary = json.loads(printed)
    assert summary["evaluations"] == 3
    assert summary["speedup"] >= 1


def test_remote_runners_share_the_daemon(run, operator, daemon, tmp_path):
    options = ("--op-dir", operator, "--budget", 1, "--family", "knobs", "--daemon", daemon)
    status, printed, messages = run(
        "train", *options, "--runners", 2, "--evaluations", 10, "--out", tmp_path / "training"
    )
    assert (status, printed.split(":")[0]) == (0, "10 evaluations in 1 iterations"), messages
    assert _weights(tmp_path / "training")["actor.5.bias"].shape == (256,)


def test_equal_trainings_give_equal_policies(run, operator, daemon, tmp_path):
    for name in ("one", "other"):
        options = ("--op-dir", operator, "--budget", 2, "--daemon", daemon, "--evaluations", 20)
        assert run("train", *options, "--seed", 5, "--out", tmp_path / name)[0] == 0
    one, other = _weights(tmp_path / "one"), _weights(tmp_path / "other")
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_too_few_evaluations_are_refused(run, operator, daemon, tmp_path):
    options = ("--op-dir", operator, "--daemon", daemon, "--evaluations", 100, "--out", tmp_path / "t")
    status, _, messages = run("train", *options)
    assert status == 2
    assert "one iteration takes 200 evaluations" in messages
