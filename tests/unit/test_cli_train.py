"""``ascend-gym train`` and ``optimize --method ppo``: what they refuse, with and without the packages."""

import shlex
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from conftest import FakeEvaluator

from ascend_gym.cli.methods import needing_training_packages
from ascend_gym.core.errors import MisuseError


def _refusal(run, *arguments):
    status, _, errors = run(*arguments)
    assert status == 2
    return errors


def test_training_says_what_to_install(run, monkeypatch, toy_folder, tmp_path):
    for package in ("ray", "torch", "tensorboardX"):
        monkeypatch.setitem(sys.modules, package, None)
    options = ("--op-dir", toy_folder, "--out", tmp_path / "out", "--daemon", "ipc:///nowhere")
    assert "pip install 'ascend-gym[train]'" in _refusal(run, "train", *options)


def test_packages_that_only_rllib_imports_are_advised_too_and_ours_are_not():
    with pytest.raises(MisuseError) as refused, needing_training_packages("training"):
        raise ModuleNotFoundError("No module named 'tree'", name="tree")
    assert str(refused.value) == "training needs tree: pip install 'ascend-gym[train]'"
    with pytest.raises(ModuleNotFoundError), needing_training_packages("training"):
        raise ModuleNotFoundError("No module named 'baselines.ppo'", name="baselines.ppo")


def test_a_search_with_a_policy_says_what_to_install(run, monkeypatch, toy_folder, tmp_path):
    monkeypatch.setattr("ascend_gym.client.connect", lambda *_, **__: FakeEvaluator())
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "baselines.ppo_policy", raising=False)
    monkeypatch.delitem(sys.modules, "baselines.ppo_search", raising=False)
    (tmp_path / "policy.pt").write_bytes(b"")
    options = ("--op-dir", toy_folder, "--method", "ppo", "--checkpoint", tmp_path, "--daemon", "ipc:///x")
    assert "pip install 'ascend-gym[train]'" in _refusal(run, "optimize", "toy", *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--operators", "nonsense"], "nonsense"),
        (["--suite", "nonsense"], "nonsense"),
        (["--resume", ".", "--out", "there"], "give only one of them"),
        (["--resume", "."], "is not the folder of a training"),
    ],
)
def test_trainings_that_cannot_be_are_refused(run, tmp_path, options, message):
    assert message in _refusal(run, "train", *options)
    assert not (tmp_path / "runs").exists()


def test_a_search_with_a_policy_needs_one(run, toy_folder, tmp_path):
    options = ("optimize", "toy", "--op-dir", toy_folder, "--method", "ppo")
    assert "needs --checkpoint DIR" in _refusal(run, *options)
    assert "holds no checkpoint" in _refusal(run, *options, "--checkpoint", tmp_path)


@pytest.mark.parametrize(("options", "least"), [([], 200), (["--budget", "2", "--runners", "4"], 24)])
def test_too_few_evaluations_are_refused_before_anything_is_loaded(
    run, monkeypatch, toy_folder, tmp_path, options, least
):
    monkeypatch.setitem(sys.modules, "ray", None)  # importing it would fail, and say so instead
    told = ("--op-dir", toy_folder, "--evaluations", least - 1, "--out", tmp_path / "out", *options)
    assert f"one iteration takes {least} evaluations, got {least - 1}" in _refusal(run, "train", *told)
    assert not (tmp_path / "out").exists()


def test_an_interrupted_training_prints_a_command_that_can_be_pasted(run, monkeypatch, toy_folder):
    def interrupted(*_):
        raise KeyboardInterrupt

    ppo = SimpleNamespace(Training=lambda *_, **__: None, train=interrupted)
    monkeypatch.setitem(sys.modules, "baselines.ppo", ppo)
    monkeypatch.setattr("ascend_gym.cli.train.opened_daemons", lambda addresses, _: nullcontext(addresses))
    told = ("--op-dir", toy_folder, "--evaluations", 300, "--out", "my runs/ppo", "--daemon", "ipc:///x y")
    status, _, err = run("train", *told)
    resume = ["train", "--resume", "my runs/ppo", "--evaluations", "300", "--daemon", "ipc:///x y"]
    assert status == 130
    assert shlex.split(err.split("the beginning: ")[1]) == ["ascend-gym", *resume]
    status, _, err = run(*resume)
    assert (status, "the beginning: " in err) == (130, True)
