"""Conversations over the real OpenEnv server and client."""

import threading

import pytest
from conftest import FakeEvaluator, make_spec

openenv = pytest.importorskip("openenv", reason="needs the extra 'openenv'")
uvicorn = pytest.importorskip("uvicorn", reason="needs the extra 'openenv'")

from ascend_gym.chat.openenv_server import AnswerAction, AscendOpenEnv, EpisodeObservation, app  # noqa: E402

SPECS = [make_spec(name, kernel="    Ln(y, y, n);\n") for name in ("first", "second")]
FASTER = (
    "### FILE: op_kernel/toy.cpp\n<<<<<<< SEARCH\n    Ln(y, y, n);\n=======\n"
    "    Ln(y, y, n);  // latency: 50\n>>>>>>> REPLACE\n"
)


class _Server(uvicorn.Server):
    def __init__(self, application):
        super().__init__(uvicorn.Config(application, port=0, log_level="error"))
        self.listening = threading.Event()
        self.thread = threading.Thread(target=self.run)

    async def startup(self, sockets=None):
        await super().startup(sockets)
        self.listening.set()

    def __enter__(self):
        self.thread.start()
        assert self.listening.wait(180)
        port = self.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    def __exit__(self, *_):
        self.should_exit = True
        self.thread.join()


def test_an_episode_over_the_network():
    options = {"operator": SPECS, "budget": 3, "unusable_penalty": 0.25, "evaluator": FakeEvaluator()}
    with _Server(app(max_concurrent_envs=2, **options)) as base_url:
        client = openenv.GenericEnvClient(base_url=base_url).sync()
        with client:
            opened = client.reset(seed=1)
            assert [message["role"] for message in opened.observation["messages"]] == ["system", "user"]
            assert not opened.done
            state = client.state()
            assert state["operator"] in ("core/first", "core/second")
            faster = client.step({"content": FASTER})
            assert faster.reward == pytest.approx(0.693, abs=1e-3)
            assert "fastest so far" in faster.observation["messages"][0]["content"]
            chatter = client.step({"content": "I would use larger tiles. \U0001f600"})
            assert chatter.reward == -0.25
            assert "could not be used" in chatter.observation["messages"][0]["content"]
            assert client.step({"content": FASTER}).done
            state = client.state()
            assert (state["step_count"], state["budget_left"]) == (3, 0)
            assert state["speedup"] == pytest.approx(2.0)
            client.reset(seed=1)
            assert client.state()["budget_left"] == 3


def test_sessions_are_apart_and_end_with_their_environment():
    evaluator = FakeEvaluator()
    one, other = (AscendOpenEnv(operator=SPECS[0], evaluator=evaluator) for _ in range(2))
    one.reset(episode_id="mine")
    other.reset()
    told = one.step(AnswerAction(content=FASTER))
    assert isinstance(told, EpisodeObservation)
    assert told.metadata["status"] == "ok"
    assert one.state.episode_id == "mine"
    assert one.state.speedup == pytest.approx(2.0)
    assert other.state.speedup == 1.0
    one.close()
    other.close()
