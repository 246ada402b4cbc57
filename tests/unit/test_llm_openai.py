"""The OpenAI endpoint against a real HTTP server that speaks the chat format, well and badly."""

import json
import socket
import threading

import pytest
from chat_server import ChatServer

from ascend_gym.core.errors import MisuseError, ModelError
from ascend_gym.core.protocols import Ending, Message
from ascend_gym.search.llm import model_named
from ascend_gym.search.llm.cassette import CassetteLlm, CassetteMode
from ascend_gym.search.llm.endpoint import FIRST_DELAY_S
from ascend_gym.search.llm.limits import CallLimits, Clock
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.llm.openai_client import OpenAiClient
from ascend_gym.search.llm.openai_endpoint import OpenAiEndpoint

KEY = "sk-very-secret"
MESSAGES = [Message("system", "be brief"), Message("user", "hello 块")]


def chat(text="hi", **fields):
    message = {"role": "assistant", "content": text}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "served-model",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
        **fields,
    }


def _ask(server, *, waits=None, deadline_s=180.0, limits=None, **options):
    waits = [] if waits is None else waits
    endpoint = OpenAiEndpoint(
        "asked-model",
        base_url=server.base_url,
        api_key=KEY,
        clock=Clock(wait=waits.append),
        limits=CallLimits(**(limits or {})),
        **options,
    )
    return endpoint.complete(MESSAGES, seed=7, max_tokens=99, deadline_s=deadline_s)


def test_a_completion_is_asked_for_and_read():
    with ChatServer((200, {}, chat("the answer"))) as server:
        completion = _ask(server, temperature=0.5, reasoning_effort="low")
    assert completion.text == "the answer"
    assert (completion.prompt_tokens, completion.completion_tokens) == (11, 3)
    assert completion.model == "served-model"
    ((path, authorization, body),) = server.requests
    assert path == "/v1/chat/completions"
    assert authorization == f"Bearer {KEY}"
    assert body["model"] == "asked-model"
    assert body["seed"] == 7
    assert body["max_tokens"] == 99
    assert body["temperature"] == 0.5
    assert body["reasoning_effort"] == "low"
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hello 块"},
    ]


def test_neither_temperature_nor_reasoning_effort_is_sent_unless_asked_for():
    with ChatServer((200, {}, chat())) as server:
        _ask(server)
    assert not {"temperature", "reasoning_effort"} & server.requests[0][2].keys()


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_busy_and_broken_servers_are_asked_again(status):
    waits = []
    with ChatServer((status, {}, {"error": {"message": "later"}}), (200, {}, chat("at last"))) as server:
        assert _ask(server, waits=waits).text == "at last"
    assert len(server.requests) == 2
    assert waits == [FIRST_DELAY_S]


def test_the_server_says_how_long_to_wait():
    waits = []
    with ChatServer((429, {"Retry-After": "3"}, {}), (200, {}, chat())) as server:
        _ask(server, waits=waits)
    assert waits == [3.0]


def test_delays_grow_and_attempts_are_bounded():
    waits = []
    with ChatServer((500, {}, {"error": {"message": "broken"}})) as server:
        with pytest.raises(ModelError, match=r"asked-model.*500.*broken"):
            _ask(server, waits=waits, limits={"max_attempts": 4})
        assert len(server.requests) == 4
    assert waits == [FIRST_DELAY_S, 2 * FIRST_DELAY_S, 4 * FIRST_DELAY_S]


def test_a_wait_beyond_the_deadline_is_not_begun():
    waits = []
    with ChatServer((429, {"Retry-After": "60"}, {})) as server, pytest.raises(ModelError):
        _ask(server, waits=waits, deadline_s=50.0)
    assert waits == []
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_refused_requests_are_not_repeated(status):
    with ChatServer((status, {}, {"error": {"message": f"no: {KEY}"}})) as server:
        with pytest.raises(ModelError, match="no: ") as caught:
            _ask(server)
        assert len(server.requests) == 1
    assert KEY not in str(caught.value)


def test_models_that_name_the_token_limit_otherwise_are_obeyed():
    message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    with ChatServer((400, {}, {"error": {"message": message}}), (200, {}, chat())) as server:
        endpoint = OpenAiEndpoint("m", base_url=server.base_url, api_key=None)
        for _ in range(2):
            endpoint.complete(MESSAGES, seed=1, max_tokens=5, deadline_s=180.0)
    limits = [[key for key in body if key.startswith("max_")] for _, _, body in server.requests]
    assert limits == [["max_tokens"], ["max_completion_tokens"], ["max_completion_tokens"]]


WINDOW = "This model's maximum context length is 4096 tokens. However, you requested 20000 tokens ("
TOO_LARGE = "'max_tokens' or 'max_completion_tokens' is too large: 16384. "


@pytest.mark.parametrize(
    ("error", "limits"),
    [
        ({"message": f"{WINDOW}3000 in the messages, 17000 in the completion)."}, [16384, 1080, 1080]),
        (
            {"message": f"{TOO_LARGE}{WINDOW[:51]} and your request has 1000 input tokens"},
            [16384, 3080, 3080],
        ),
        (
            {"message": "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"},
            [16384, 8192, 8192],
        ),
        ({"message": "max_tokens: 16384 > 4096, which is the maximum allowed"}, [16384, 4096, 4096]),
        ({"message": "too long", "code": "context_length_exceeded"}, [16384, 8192, 8192]),
    ],
)
def test_answers_are_as_long_as_the_context_window_allows(error, limits):
    with ChatServer((400, {}, {"error": error}), (200, {}, chat())) as server:
        endpoint = OpenAiEndpoint("m", base_url=server.base_url, api_key=None)
        for _ in range(2):
            endpoint.complete(MESSAGES, seed=1, max_tokens=16384, deadline_s=180.0)
    assert [body["max_tokens"] for _, _, body in server.requests] == limits


def test_a_prompt_that_fills_the_context_window_is_an_error_that_says_so():
    message = f"{WINDOW}4000 in the messages, 16000 in the completion)."
    with ChatServer((400, {}, {"error": {"message": message}})) as server:
        endpoint = OpenAiEndpoint("m", base_url=server.base_url, api_key=None)
        with pytest.raises(ModelError, match=r"leaves no room for an answer.*maximum context length is 4096"):
            endpoint.complete(MESSAGES, seed=1, max_tokens=16384, deadline_s=180.0)
    assert len(server.requests) == 1


REFUSED_SEED = {"error": {"message": "Unsupported value.", "param": "seed", "code": "unsupported_value"}}
REFUSED_TEMPERATURE = {"detail": [{"loc": ["body", "temperature"], "msg": "Extra inputs are not permitted"}]}


def test_options_that_a_model_refuses_are_left_out_from_then_on():
    answers = [(400, {}, REFUSED_SEED), (422, {}, REFUSED_TEMPERATURE), (200, {}, chat())]
    with ChatServer(*answers) as server:
        endpoint = OpenAiEndpoint(
            "m",
            base_url=server.base_url,
            api_key=None,
            temperature=0.5,
            limits=CallLimits(max_attempts=1),
        )
        for _ in range(2):
            endpoint.complete(MESSAGES, seed=1, max_tokens=5, deadline_s=180.0)
    sent = [sorted({"seed", "temperature"} & body.keys()) for _, _, body in server.requests]
    assert sent == [["seed", "temperature"], ["temperature"], [], []]


def test_an_option_is_dropped_once():
    with ChatServer((400, {}, REFUSED_SEED)) as server:
        with pytest.raises(ModelError, match="Unsupported value"):
            _ask(server)
        assert len(server.requests) == 2


def test_a_refusal_of_something_else_is_an_error():
    refused = {"error": {"message": "the seed of doubt: messages too long", "param": "messages"}}
    with ChatServer((400, {}, refused)) as server:
        with pytest.raises(ModelError, match="too long"):
            _ask(server)
        assert len(server.requests) == 1


def test_an_empty_account_is_not_asked_again():
    with ChatServer((429, {}, {"error": {"message": "pay", "code": "insufficient_quota"}})) as server:
        with pytest.raises(ModelError, match="pay"):
            _ask(server)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "delay_s"),
    [
        ({"Retry-After-Ms": "1500"}, 1.5),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, FIRST_DELAY_S),
        ({"Retry-After": "-1"}, FIRST_DELAY_S),
        ({"Retry-After": "nan"}, FIRST_DELAY_S),
    ],
)
def test_delays_are_read_in_every_form(headers, delay_s):
    waits = []
    with ChatServer((503, headers, {}), (200, {}, chat())) as server:
        _ask(server, waits=waits)
    assert waits == [delay_s]


def test_reasoning_that_only_the_total_counts_is_counted():
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}
    with ChatServer((200, {}, chat(usage=usage))) as server:
        completion = _ask(server)
    assert (completion.prompt_tokens, completion.completion_tokens) == (10, 30)


@pytest.mark.parametrize(
    "base_url",
    [
        "localhost:8000",
        "ftp://host/v1",
        "http://",
        "http://h:x/v1",
        "http://h:0",
        "http://[",
        "http://a b/",
        "http://h/?k=1",
    ],
)
def test_an_address_that_cannot_be_right_is_refused(base_url):
    with pytest.raises(MisuseError, match="expected an address such as"):
        OpenAiEndpoint("m", base_url=base_url, api_key=None)


@pytest.mark.parametrize("base_url", ["http://999.0.0.1/v1", "http://h/\x7f", "http://h/\x01/v1"])
def test_an_address_that_the_http_client_refuses_is_refused(base_url):
    with pytest.raises(MisuseError, match="check the address"):
        OpenAiEndpoint("m", base_url=base_url, api_key=None)


@pytest.mark.parametrize("proxy", ["gopher://proxy:1", "http://proxy:port"])
def test_a_proxy_that_cannot_be_used_is_refused(proxy, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(MisuseError, match="_PROXY in the environment"):
        OpenAiEndpoint("m", base_url="https://host/v1", api_key=None)
    OpenAiEndpoint("m", base_url="http://127.0.0.1:1/v1", api_key=None)


def test_without_a_key_none_is_sent(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ChatServer((200, {}, chat())) as server:
        endpoint = OpenAiEndpoint("m", base_url=server.base_url, api_key=None)
        endpoint.complete(MESSAGES, seed=1, max_tokens=5, deadline_s=180.0)
    assert server.requests[0][1] is None


def test_a_prompt_with_lone_surrogates_is_sent():
    with ChatServer((200, {}, chat("fine"))) as server:
        endpoint = OpenAiEndpoint("m", base_url=server.base_url, api_key=None)
        prompt = [Message("user", "a \ud800 b")]
        assert endpoint.complete(prompt, seed=1, max_tokens=5, deadline_s=180.0).text == "fine"
    assert server.requests[0][2]["messages"][0]["content"] == "a \ufffd b"


def test_an_address_with_a_password_is_refused_without_repeating_it():
    with pytest.raises(MisuseError) as caught:
        OpenAiEndpoint("m", base_url=f"http://me:{KEY}@host/v1", api_key=None)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-\u4e00", "sk-a\tb"])
def test_a_key_that_cannot_be_right_is_refused_without_repeating_it(key):
    with pytest.raises(MisuseError, match="OPENAI_API_KEY") as caught:
        OpenAiEndpoint("m", base_url=None, api_key=key)
    assert key not in str(caught.value)


def test_the_newline_behind_a_key_is_no_part_of_it():
    with ChatServer((200, {}, chat("none of the above"))) as server:
        endpoint = OpenAiEndpoint("m", base_url=server.base_url, api_key="none\n")
        assert endpoint.complete(MESSAGES, seed=1, max_tokens=5, deadline_s=180.0).text == "none of the above"
    assert server.requests[0][1] == "Bearer none"


@pytest.mark.parametrize(
    "body",
    [
        b"<html>busy</html>",
        b"",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'"text"',
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": [null]}',
        b'{"choices": {"a": 1}}',
        b'{"choices": "text"}',
        b'{"choices": 1}',
        b'{"choices": [{"message": {"content": ["a", "b"]}}]}',
    ],
)
def test_garbage_is_a_model_error_after_the_attempts_allowed(body):
    with ChatServer((200, {}, body)) as server, pytest.raises(ModelError):
        _ask(server)


def test_an_answer_that_breaks_off_in_transit_is_asked_for_again():
    whole = json.dumps(chat("whole")).encode()
    with ChatServer((200, {"X-Pretend": len(whole)}, whole[:40]), (200, {}, chat("whole"))) as server:
        assert _ask(server).text == "whole"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        (
            {"finish_reason": "length", "message": {"role": "assistant", "content": "```cpp\nint"}},
            "```cpp\nint",
        ),
        ({"finish_reason": "stop", "message": {"role": "assistant", "content": None, "refusal": "no"}}, "no"),
        ({"finish_reason": "content_filter", "message": {"role": "assistant", "content": None}}, ""),
        ({"finish_reason": "length", "message": {"content": "", "reasoning_content": "hmm"}}, ""),
        ({"message": {"content": "yes", "reasoning_content": "hmm"}}, "yes"),
        ({"message": {"content": "\n<think>a\n```x```</think>\n\nyes"}}, "yes"),
        ({"message": {"content": "hidden start</think>yes"}}, "yes"),
        ({"message": {"content": "<think>cut off in thought"}}, ""),
        ({"message": {"content": "what <think> means"}}, "what <think> means"),
        (
            {"message": {"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "yes"}]}},
            "yes",
        ),
    ],
)
def test_cut_off_answers_and_refusals_are_answers(choice, text):
    body = chat()
    body["choices"] = [{"index": 0, **choice}]
    with ChatServer((200, {}, body)) as server:
        assert _ask(server).text == text


@pytest.mark.parametrize(
    ("choice", "ending"),
    [
        ({"finish_reason": "stop", "message": {"content": "yes"}}, Ending.COMPLETE),
        ({"message": {"content": "yes"}}, Ending.COMPLETE),
        ({"finish_reason": ["length"], "message": {"content": "yes"}}, Ending.COMPLETE),
        ({"finish_reason": "length", "message": {"content": "```cpp\nint"}}, Ending.TOKEN_LIMIT),
        (
            {"finish_reason": "length", "message": {"content": "", "reasoning_content": "hm"}},
            Ending.TOKEN_LIMIT,
        ),
        ({"finish_reason": "length", "message": {"content": None}}, Ending.TOKEN_LIMIT),
        ({"finish_reason": "content_filter", "message": {"content": None}}, Ending.REFUSED),
        ({"finish_reason": "stop", "message": {"content": None, "refusal": "no"}}, Ending.REFUSED),
    ],
)
def test_a_model_that_used_up_its_tokens_is_told_apart_from_one_that_refused(choice, ending, tmp_path):
    body = chat()
    body["choices"] = [{"index": 0, **choice}]
    with ChatServer((200, {}, body)) as server:
        endpoint = OpenAiEndpoint("m", base_url=server.base_url, api_key=KEY)
        cassette = CassetteLlm(endpoint, tmp_path / "a.jsonl", CassetteMode.RECORD, model="m")
        asked = [cassette.complete(MESSAGES, seed=1, max_tokens=9, deadline_s=180.0) for _ in range(2)]
        assert len(server.requests) == 1
    assert [each.ending for each in asked] == [ending, ending]


def test_missing_usage_counts_as_no_tokens():
    with ChatServer((200, {}, chat(usage=None))) as server:
        completion = _ask(server)
    assert (completion.prompt_tokens, completion.completion_tokens) == (0, 0)


@pytest.mark.parametrize(
    "usage", ["x", 1, [], {}, {"prompt_tokens": "x"}, {"prompt_tokens": -1, "completion_tokens": True}]
)
def test_broken_usage_counts_as_no_tokens(usage):
    with ChatServer((200, {}, chat("fine", usage=usage, model=7))) as server:
        completion = _ask(server)
    assert (completion.text, completion.prompt_tokens, completion.completion_tokens) == ("fine", 0, 0)
    assert completion.model == "asked-model"


def test_lone_surrogates_of_an_answer_are_replaced():
    with ChatServer((200, {}, chat("a \ud800 b", model="\udfff"))) as server:
        completion = _ask(server)
    assert (completion.text, completion.model) == ("a \ufffd b", "\ufffd")


def test_a_huge_answer_arrives_whole():
    with ChatServer((200, {}, chat("x" * 2_000_000))) as server:
        assert len(_ask(server).text) == 2_000_000


def test_a_server_that_does_not_answer_in_time_is_given_up():
    release = threading.Event()

    def hang(body):
        release.wait()
        return chat()

    with ChatServer((200, {}, hang)) as server:
        with pytest.raises(ModelError, match="Timeout"):  # the server waits until it is given up
            _ask(server, deadline_s=0.3)
        release.set()


def test_nobody_there_is_a_model_error():
    with socket.socket() as deaf:  # has the port, which nobody else gets, and does not listen
        deaf.bind(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{deaf.getsockname()[1]}/v1"
        endpoint = OpenAiEndpoint("m", base_url=base_url, api_key=None, clock=Clock(wait=lambda _: None))
        with pytest.raises(ModelError, match="Connection"):
            endpoint.complete(MESSAGES, seed=1, max_tokens=5, deadline_s=180.0)


def test_an_endpoint_needs_a_key_or_an_address():
    with pytest.raises(MisuseError, match="OPENAI_API_KEY"):
        OpenAiEndpoint("m", base_url=None, api_key=None)


def test_models_by_name(monkeypatch):
    assert isinstance(model_named("offline"), OfflineModel)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(MisuseError, match="OPENAI_BASE_URL"):
        model_named("deepseek-chat")
    with ChatServer((200, {}, chat())) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        model_named("deepseek-chat").complete(MESSAGES, seed=1, max_tokens=5, deadline_s=180.0)
    assert server.requests[0][1] == f"Bearer {KEY}"
    assert server.requests[0][2]["model"] == "deepseek-chat"


def test_a_base_url_makes_every_name_a_model_of_the_endpoint():
    with ChatServer((200, {}, chat("from afar"))) as server:
        model = model_named("offline", base_url=server.base_url)
        assert model.complete(MESSAGES, seed=1, max_tokens=5, deadline_s=180.0).text == "from afar"
    assert server.requests[0][2]["model"] == "offline"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_our_own_is_not_taken_for_a_slow_endpoint():
    def create(**_):
        raise TypeError("no such argument")

    client = OpenAiClient("http://127.0.0.1:9/v1", KEY, 2**20)
    with pytest.raises(ModelError, match="neither with an answer"):
        client.ask(create, {}, 180.0)
