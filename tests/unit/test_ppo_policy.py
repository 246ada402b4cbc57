"""The policies of PPO: what they draw, and the file that keeps them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: extra [train]")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from ascend_gym.core.errors import MisuseError  # noqa: E402
from ascend_gym.env.actions import ACTIONS  # noqa: E402
from ascend_gym.env.features import feature_names  # noqa: E402
from ascend_gym.env.move_features import MOVE_FEATURES, move_space  # noqa: E402
from ascend_gym.env.rewrite_actions import KNOB_POSITIONS, KNOBS  # noqa: E402
from baselines.ppo_checkpoints import POLICY_NAME, policy_digest, policy_path  # noqa: E402
from baselines.ppo_policy import RULED_OUT, Policy, load_policy, network, save_policy  # noqa: E402

ACTION_COUNT = move_space().shape[0]
TRIED = MOVE_FEATURES.index("tried")


def _observation(legal, tried, seed=0):
    rng = np.random.default_rng(seed)
    moves = rng.normal(size=move_space().shape).astype(np.float32)
    moves[:, TRIED] = 0
    moves[list(tried), TRIED] = 1
    mask = np.zeros(ACTION_COUNT, np.int8)
    mask[list(legal)] = 1
    features = rng.normal(size=len(feature_names(ACTIONS["rules"](1)))).astype(np.float32)
    return {"observations": features, "moves": moves, "action_mask": mask}


def _drawable(observation, seed=0):
    logits = Policy("rules", network("rules", seed)).logits(observation)
    return set(np.flatnonzero(logits > RULED_OUT).tolist())


_ACTIONS = st.sets(st.integers(0, ACTION_COUNT - 1), min_size=1, max_size=20)


@given(legal=_ACTIONS, tried=_ACTIONS, seed=st.integers(0, 99))
@settings(max_examples=25)
def test_only_legal_moves_are_drawn_and_untried_ones_first(legal, tried, seed):
    assert _drawable(_observation(legal, tried, seed), seed) == (legal - tried or legal)


def test_without_a_legal_move_values_and_gradients_are_numbers():
    trained = network("rules", 0)
    batch = {name: torch.as_tensor(part)[None] for name, part in _observation([], []).items()}
    logits, values = trained(batch)
    (torch.distributions.Categorical(logits=logits).entropy().sum() + values.sum()).backward()
    assert all(torch.isfinite(weight.grad).all() for weight in trained.parameters())


def test_a_rule_that_is_preferred_on_one_operator_is_preferred_on_another():
    """Weights are shared over moves: what is learnt of a move holds where it looks the same."""
    policy = Policy("rules", network("rules", 3))
    one, other = _observation([5, 13], [], 1), _observation([5, 21], [], 1)
    other["moves"][21] = one["moves"][5]
    logits = policy.logits(other)
    assert logits[5] == pytest.approx(policy.logits(one)[5])
    assert logits[21] == pytest.approx(logits[5])  # embeddings of rules begin as equals


def test_untrained_networks_depend_on_the_seed_alone():
    observation = _observation([1, 2, 3], [])
    first, again, other = (Policy("rules", network("rules", seed)).logits(observation) for seed in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()


@pytest.mark.parametrize("family", ["rules", "knobs"])
def test_a_policy_survives_its_file(tmp_path, family):
    trained = network(family, 7)
    save_policy(tmp_path, family, trained.state_dict())
    policy = load_policy(policy_path(tmp_path))
    seen = (
        _observation([0, 9], [])
        if family == "rules"
        else np.ones(trained.critic[0].normalized_shape, np.float32)
    )
    assert policy.family == family
    logits = policy.logits(seen)
    assert logits.tolist() == Policy(family, trained).logits(seen).tolist()
    assert logits.shape == ((ACTION_COUNT,) if family == "rules" else (KNOBS * KNOB_POSITIONS,))
    assert policy_digest(tmp_path) == policy_digest(tmp_path)


def test_files_that_are_no_policies_are_refused(tmp_path):
    path = tmp_path / POLICY_NAME
    with pytest.raises(MisuseError, match="holds no checkpoint"):
        policy_path(tmp_path)
    path.write_bytes(b"nonsense")
    with pytest.raises(MisuseError, match="is no policy"):
        load_policy(path)
    torch.save({"family": "rules", "weights": {}}, path)
    with pytest.raises(MisuseError, match="is no policy"):
        load_policy(path)
    torch.save({"family": "rules", "inputs": {"rules": ["another"]}, "weights": {}}, path)
    with pytest.raises(MisuseError, match="train again"):
        load_policy(path)


def test_code_in_a_policy_file_is_not_run(tmp_path):
    marker = tmp_path / "marker"

    class Trap:
        def __reduce__(self):
            return (open, (str(marker), "w"))

    torch.save({"family": Trap()}, tmp_path / POLICY_NAME)
    with pytest.raises(MisuseError, match="is no policy"):
        load_policy(tmp_path / POLICY_NAME)
    assert not marker.exists()
