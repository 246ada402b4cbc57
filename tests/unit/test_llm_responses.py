"""Models that are asked in the ``responses`` format, by a real client at a real HTTP server."""

import pytest
from chat_server import ChatServer

from ascend_gym.core.errors import ModelError
from ascend_gym.core.protocols import Ending, Message
from ascend_gym.search.llm.limits import CallLimits, Clock
from ascend_gym.search.llm.openai_endpoint import OpenAiEndpoint

MESSAGES = [Message("system", "be brief"), Message("user", "hello")]
REASONING = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "let me see"}]}
ONLY_RESPONSES = "This model is only supported in v1/responses and not in v1/chat/completions."


def response(*parts, **fields):
    message = {"type": "message", "role": "assistant", "content": list(parts)}
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "served-model",
        "output": [REASONING, message],
        "usage": {"input_tokens": 11, "output_tokens": 5, "total_tokens": 16},
        **fields,
    }


def text(said):
    return {"type": "output_text", "text": said, "annotations": []}


def refusal(status, message, **fields):
    return (status, {}, {"error": {"message": message, **fields}})


def _ask(server, *, path="/responses", **options):
    endpoint = OpenAiEndpoint(
        "asked-model",
        base_url=server.base_url + path,
        api_key="sk-very-secret",
        clock=Clock(wait=lambda _: None),
        limits=CallLimits(max_attempts=2),
        **options,
    )
    return endpoint.complete(MESSAGES, seed=7, max_tokens=999, deadline_s=180.0)


def test_an_address_that_ends_in_responses_is_asked_in_that_format():
    with ChatServer((200, {}, response(text("the "), text("answer")))) as server:
        completion = _ask(server, temperature=0.5, reasoning_effort="low")
    assert (completion.text, completion.ending) == ("the answer", Ending.COMPLETE)
    assert (completion.prompt_tokens, completion.completion_tokens) == (11, 5)
    assert completion.model == "served-model"
    ((path, _, body),) = server.requests
    assert path == "/v1/responses"
    assert body == {
        "model": "asked-model",
        "input": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}],
        "max_output_tokens": 999,
        "temperature": 0.5,
        "reasoning": {"effort": "low"},
        "store": False,
    }


def test_a_model_that_says_it_is_reached_through_responses_alone_is_asked_so_from_then_on():
    with ChatServer(refusal(404, ONLY_RESPONSES), (200, {}, response(text("hi")))) as server:
        assert _ask(server, path="").text == "hi"
    assert [path for path, _, _ in server.requests] == ["/v1/chat/completions", "/v1/responses"]


def test_options_that_are_refused_are_left_out():
    with ChatServer(
        refusal(400, "Unsupported parameter", param="reasoning.effort"),
        refusal(400, "extra inputs are not permitted: store"),
        (200, {}, response(text("hi"))),
    ) as server:
        assert _ask(server, reasoning_effort="high").text == "hi"
    assert set(server.requests[-1][2]) == {"model", "input", "max_output_tokens"}


@pytest.mark.parametrize(
    ("answer", "said", "ending"),
    [
        (
            response(
                status="incomplete", incomplete_details={"reason": "max_output_tokens"}, output=[REASONING]
            ),
            "",
            Ending.TOKEN_LIMIT,
        ),
        (
            response(text("half"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
            "half",
            Ending.TOKEN_LIMIT,
        ),
        (response({"type": "refusal", "refusal": "I will not."}), "I will not.", Ending.REFUSED),
        (
            response(status="incomplete", incomplete_details={"reason": "content_filter"}, output=[]),
            "",
            Ending.REFUSED,
        ),
    ],
)
def test_tokens_used_up_by_reasoning_are_told_apart_from_refusals(answer, said, ending):
    with ChatServer((200, {}, answer)) as server:
        completion = _ask(server)
    assert (completion.text, completion.ending) == (said, ending)
    assert completion.completion_tokens == 5


@pytest.mark.parametrize(
    "broken", [{"status": "failed", "output": []}, {"output": "hi"}, [], {"choices": []}, None]
)
def test_what_is_no_response_is_asked_again_and_then_named(broken):
    with ChatServer((200, {}, broken)) as server:
        with pytest.raises(ModelError, match="expected a response"):
            _ask(server)
        assert len(server.requests) == 2
