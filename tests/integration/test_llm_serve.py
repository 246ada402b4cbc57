"""``ascend-gym llm serve`` as a process, asked by the real openai client."""

import http.client
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import openai
import pytest
from conftest import FakeEvaluator, make_spec, ok_result

from ascend_gym.core.protocols import Message
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm import model_named
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.llm.prompts import best_of_n_messages
from ascend_gym.search.llm.server import MAX_BODY_BYTES
from ascend_gym.search.model_client import ModelClient
from ascend_gym.suite.requests import request_for
from baselines.best_of_n import BestOfN

SPEC = make_spec(
    tiling="constexpr uint32_t TILE_LENGTH = 1024;\nconstexpr uint32_t BLOCK_DIM = 8;\n",
    kernel="constexpr int32_t BUFFER_NUM = 1;\nclass K {\n};\n",
)
PROMPT = best_of_n_messages(
    SPEC, ok_result(request_for(SPEC, SPEC.baseline, MeasureProtocol()), latency_us=100.0)
)
CHAT = [{"role": message.role, "content": message.content} for message in PROMPT]
PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


def _started():
    command = [sys.executable, "-m", "ascend_gym.cli", "llm", "serve", "--model", "offline"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _ended(process, number):
    process.send_signal(number)
    printed, complaints = process.communicate(timeout=180)
    return process.returncode, printed, complaints


@pytest.fixture(scope="module")
def base_url():
    process = _started()
    yield process.stdout.readline().strip()
    _ended(process, signal.SIGTERM)


@pytest.fixture
def client(base_url, monkeypatch):
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    with openai.OpenAI(base_url=base_url, api_key="any", max_retries=0) as client:
        yield client


def _offline(seed, max_tokens=16384):
    return OfflineModel().complete(PROMPT, seed=seed, max_tokens=max_tokens, deadline_s=60.0)


@pytest.mark.parametrize("seed", range(8))
def test_the_served_model_answers_as_the_one_in_this_process(client, seed):
    expected = _offline(seed)
    answer = client.chat.completions.create(model="offline", messages=CHAT, seed=seed)
    assert answer.choices[0].message.content == expected.text
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "offline"
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (
        expected.prompt_tokens,
        expected.completion_tokens,
    )
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_our_own_client_gets_the_same_completion(base_url):
    served = model_named("offline", base_url=base_url)
    assert served.complete(PROMPT, seed=3, max_tokens=16384, deadline_s=60.0) == _offline(3)


def test_a_search_over_http_writes_the_same_journal(base_url, tmp_path):
    models = {"here": OfflineModel(), "there": model_named("offline", base_url=base_url)}
    for folder, model in models.items():
        with Journal(tmp_path / folder) as journal:
            strategy = BestOfN(SPEC, ModelClient(model, seed=4, concurrency=3), samples=6)
            run_search(SPEC, strategy, FakeEvaluator(), BudgetLedger(Budget(6)), journal, in_flight=2)
    here, there = ((tmp_path / folder / JOURNAL_NAME).read_bytes() for folder in models)
    assert here == there
    assert here.count(b'"kind":"proposal"') == 7


def test_a_stream_holds_the_same_text(client):
    chunks = list(
        client.chat.completions.create(
            model="offline", messages=CHAT, seed=3, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == _offline(3).text
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage.completion_tokens == _offline(3).completion_tokens
    assert len(chunks) > 4


def test_a_limit_cuts_the_answer_and_says_so(client):
    choice = client.chat.completions.create(
        model="offline", messages=CHAT, seed=3, max_completion_tokens=5
    ).choices[0]
    assert choice.message.content == _offline(3, max_tokens=5).text
    assert choice.finish_reason == "length"


def test_without_a_seed_the_question_decides(client):
    ask = client.chat.completions.create
    texts = [ask(model="offline", messages=CHAT).choices[0].message.content for _ in range(2)]
    assert texts[0] == texts[1]
    others = {
        ask(model="offline", messages=CHAT, max_tokens=9000 + n).choices[0].message.content for n in range(6)
    }
    assert len(others) > 1


def test_content_may_come_in_parts(client):
    parts = [{"type": "text", "text": piece} for piece in PROMPT[1].content.partition("constexpr")]
    answer = client.chat.completions.create(
        model="offline", messages=[CHAT[0], {"role": "user", "content": parts}], seed=1
    )
    assert answer.choices[0].message.content == _offline(1).text


def test_models_are_listed(client):
    assert [model.id for model in client.models.list()] == ["offline"]
    assert client.models.retrieve("offline").id == "offline"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


def test_an_unknown_model_is_not_found(client):
    with pytest.raises(openai.NotFoundError, match="offline") as caught:
        client.chat.completions.create(model="other", messages=CHAT)
    assert caught.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "messages"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"seed": 1.5}, "seed"),
        ({"n": 2}, "n"),
    ],
)
def test_a_request_that_is_wrong_is_told_where(client, changed, param):
    body = {"model": "offline", "messages": CHAT, **changed}
    with pytest.raises(openai.BadRequestError) as caught:
        client.post("/chat/completions", body=body, cast_to=object)
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"


def _raw(base_url, method, path, body=b"", **headers):
    address = urlsplit(base_url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=180)
    connection.putrequest(method, path)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders(body)
    response = connection.getresponse()
    status, error = response.status, json.loads(response.read())["error"]
    connection.close()
    return status, error["message"]


CHAT_PATH = "/v1/chat/completions"


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "message"),
    [
        ("POST", CHAT_PATH, b"{", {"Content_Length": "1"}, 400, "Invalid JSON"),
        ("POST", CHAT_PATH, b"\xff", {"Content_Length": "1"}, 400, "Invalid JSON"),
        ("POST", CHAT_PATH, b"[" * 99_999, {"Content_Length": "99999"}, 400, "Invalid JSON"),
        ("POST", CHAT_PATH, b"[]", {"Content_Length": "2"}, 400, "object"),
        ("POST", CHAT_PATH, b"", {}, 411, "Content-Length"),
        ("POST", CHAT_PATH, b"", {"Content_Length": "-1"}, 400, "number of bytes"),
        ("POST", CHAT_PATH, b"", {"Content_Length": str(MAX_BODY_BYTES + 1)}, 413, "bytes"),
        ("POST", CHAT_PATH, b"", {"Content_Length": "9" * 5000}, 413, "bytes"),
        ("POST", "/v1/other", b"", {"Content_Length": "0"}, 404, "/v1/other"),
        ("GET", CHAT_PATH, b"", {}, 404, "GET /v1/chat/completions"),
        (
            "POST",
            "/v1/embeddings",
            b'{"model":"x","input":"y"}',
            {"Content_Length": "25"},
            404,
            "/v1/embeddings",
        ),
        ("PATCH", CHAT_PATH, b"", {}, 501, "PATCH"),
    ],
)
def test_what_http_clients_do_wrong_is_told_in_the_same_form(
    base_url, method, path, body, headers, status, message
):
    answered, said = _raw(base_url, method, path, body, **headers)
    assert answered == status
    assert message in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(number):
    process = _started()
    address = process.stdout.readline()
    status, printed, complaints = _ended(process, number)
    assert address.startswith("http://127.0.0.1:")
    assert (status, printed, complaints) == (0, "", "")


def test_a_port_that_is_taken_is_a_clear_error(base_url):
    command = [sys.executable, "-m", "ascend_gym.cli", "llm", "serve", "--port", str(urlsplit(base_url).port)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 2
    assert "cannot listen on 127.0.0.1" in done.stderr


def test_several_clients_at_a_time_get_their_own_answers(base_url):
    def ask(seed):
        model = model_named("offline", base_url=base_url)
        return model.complete(PROMPT, seed=seed, max_tokens=16384, deadline_s=60.0).text

    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(ask, range(16)))
    assert texts == [_offline(seed).text for seed in range(16)]


def test_a_conversation_keeps_its_roles(client):
    messages = [
        Message("system", "be brief"),
        Message("user", "hello"),
        Message("assistant", "hi"),
        *PROMPT[1:],
    ]
    chat = [{"role": message.role, "content": message.content} for message in messages]
    chat[0]["role"] = "developer"
    answer = client.chat.completions.create(model="offline", messages=chat, seed=2)
    expected = OfflineModel().complete(messages, seed=2, max_tokens=16384, deadline_s=60.0)
    assert answer.choices[0].message.content == expected.text
