"""Conversations in the real verifiers: its environment, interception and client, with a model over HTTP."""

import asyncio

import pytest
from conftest import FakeEvaluator

vf = pytest.importorskip("verifiers.v1", reason="needs the extra 'verifiers' and Python 3.11")

from chat_server import ChatServer  # noqa: E402
from verifiers.v1.utils.loaders import environment_class, load_environment, resolve_env_config  # noqa: E402

import ascend_gym  # noqa: E402
from ascend_gym.suite.loader import load_operator  # noqa: E402

KERNEL = load_operator("add").baseline.kernel


def _whole_file(comment):
    return f"### FILE: {KERNEL.main}\n```cpp\n{KERNEL.main_text}// {comment}\n```\n"


def _completion(content):
    message = {"role": "assistant", "content": content}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "toy",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
    }


async def _played(env, base_url):
    client = vf.EvalClientConfig(base_url=base_url, api_key_var="NO_KEY_NEEDED")
    context = vf.ModelContext(model="toy", client=client)
    (task,) = env.taskset
    async with env.serving():
        return await env.run_episode(task, context)


def test_a_rollout_earns_what_its_answers_are_worth(monkeypatch):
    monkeypatch.setattr("ascend_gym.client.connect", lambda address, options: FakeEvaluator())
    config = resolve_env_config({"taskset": {"id": "ascend_gym", "operators": ["add"]}, "budget": 3})
    env = load_environment(config)
    assert isinstance(env, ascend_gym.AscendEnv)
    answers = [_whole_file("latency: 50"), "I would use larger tiles.", _whole_file("status: timeout")]
    with ChatServer(*((200, {}, _completion(answer)) for answer in answers)) as server:
        episode = asyncio.run(_played(env, server.base_url))
    assert episode.errors == []
    assert episode.ok
    (trace,) = episode.traces
    assert trace.errors == []
    assert trace.reward == pytest.approx(0.693 - 0.1, abs=1e-3)
    assert trace.metrics["speedup"] == pytest.approx(2.0)
    assert (trace.metrics["evaluations"], trace.metrics["unusable_answers"]) == (3, 1)
    conversations = [body["messages"] for _, _, body in server.requests]
    assert [len(messages) for messages in conversations] == [2, 4, 6]
    assert conversations[0][0]["role"] == "system"
    assert KERNEL.main in str(conversations[0][1]["content"])
    assert "fastest so far" in str(conversations[1][-1]["content"])
    assert "could not be used" in str(conversations[2][-1]["content"])


def test_suites_are_tasks_for_each_operator():
    config = resolve_env_config({"taskset": {"id": "ascend_gym", "operators": ["core"]}})
    names = [task.data.name for task in load_environment(config).taskset]
    assert {"core/gelu", "core/softmax"} <= set(names)
    assert environment_class("ascend_gym") is ascend_gym.AscendEnv
