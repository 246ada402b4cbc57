"""A review's ideas against oracle, domain, answers and wire: each is tried, and none pays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import value_tricks
import zmq
from conftest import make_candidate
from daemon_processes import BACKEND, DEADLINE_S, PYTHONPATH
from fake_backend import make_operator, make_request

from ascend_gym.client import DaemonOptions, LocalDaemon, ZmqEvaluator
from ascend_gym.core import codec
from ascend_gym.core.codec import Kind, WireMessage, decode, encode
from ascend_gym.core.records import Candidate, Case, OpSpec, TensorSpec
from ascend_gym.core.status import Status
from ascend_gym.core.toml_file import read_toml
from ascend_gym.rewrites.answer import candidate_from_answer
from ascend_gym.suite.domain import domain_case, smallest_case
from ascend_gym.suite.inputs import numpy_dtype
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for

IDEAS = read_toml(Path(__file__).parent / "ideas.toml")["idea"]
SEED = 20_261_125
KERNEL = """#include "kernel_operator.h"
extern "C" __global__ __aicore__ void toy(GM_ADDR x)
{
    once;
    twice;
    twice;
}
"""
WRITTEN_OUT = {
    "NESTED": "```markdown\n" * 1000 + "```\n" * 1000,
    "SURROGATE": "### FILE: op_kernel/toy.cpp\n<<<<<<< SEARCH\nonce;\n=======\n// \udc80\n>>>>>>> REPLACE\n",
}


def of(surface: str) -> list[Any]:
    """Return the ideas for a surface, each as a parameter."""
    return [pytest.param(each, id=each["idea"]) for each in IDEAS if each["surface"] == surface]


def test_there_are_a_hundred_ideas_and_each_is_another() -> None:
    assert len(IDEAS) >= 100
    assert len({(each.get("operator"), each["try"]) for each in IDEAS}) == len(IDEAS)
    assert {each["surface"] for each in IDEAS} == {"values", "answer", "wire"}


@cache
def drawn(operator: str) -> tuple[OpSpec, Case, Any, Any]:
    """Return an operator, its domain case, inputs of it and the right outputs."""
    spec = load_operator(f"core/{operator}")
    case = domain_case(spec, smallest_case(spec.cases))
    oracle = oracle_for(spec)
    inputs = oracle.inputs(case, SEED)
    return spec, case, inputs, oracle.expected(case, inputs)


@pytest.mark.slow
@pytest.mark.parametrize("idea", of("values"))
def test_values_that_cost_less_are_incorrect(idea: dict[str, str]) -> None:
    spec, case, inputs, expected = drawn(idea["operator"])
    names = {tensor.name: arrays[0] for tensor, arrays in zip(case.inputs, inputs, strict=True)}
    names["a_"] = names.get("a")  # "a" are the attributes
    right = {tensor.name: arrays[0] for tensor, arrays in zip(case.outputs, expected, strict=True)}
    attributes = dict(case.attributes)
    with np.errstate(all="ignore"):
        known = {**vars(value_tricks), **names, "np": np, "right": right, "a": attributes}
        made = eval(idea["try"], known)
        outputs = [
            [_as_output(array, tensor).reshape(tensor.shapes[0])]
            for tensor, array in zip(case.outputs, made if isinstance(made, tuple) else (made,), strict=True)
        ]
    verdict = oracle_for(spec).judge(case, outputs, expected)
    assert not verdict.correct


@pytest.mark.slow
@pytest.mark.parametrize("operator", sorted({each["operator"] for each in IDEAS if "operator" in each}))
def test_the_right_values_are_correct(operator: str) -> None:
    spec, case, _, expected = drawn(operator)
    right = [
        [_as_output(array, tensor) for array in arrays]
        for tensor, arrays in zip(case.outputs, expected, strict=True)
    ]
    assert oracle_for(spec).judge(case, right, expected).correct


def _as_output(array: Any, tensor: TensorSpec) -> Any:
    whole = not tensor.dtype.is_floating and np.asarray(array).dtype.kind == "f"
    with np.errstate(all="ignore"):
        return np.asarray(np.rint(array) if whole else array).astype(numpy_dtype(tensor.dtype))


@pytest.mark.parametrize("idea", of("answer"))
def test_answers_change_what_they_name_or_nothing(idea: dict[str, str]) -> None:
    base = make_candidate(kernel=KERNEL)
    read = candidate_from_answer(WRITTEN_OUT.get(idea["try"], idea["try"]), base)
    if not isinstance(read, Candidate):
        assert read.kind.value == idea["ends"], str(read)
        return
    assert idea["ends"] == "no harm"
    assert set(read.texts) == set(base.texts)
    assert [path for path in base.texts if read.texts[path] != base.texts[path] + "\n"] != []
    assert "op_host/toy.cpp" in read.texts
    assert read.texts["op_host/toy.cpp"] == base.texts["op_host/toy.cpp"]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalDaemon, OpSpec]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", PYTHONPATH)
        folder = tmp_path_factory.mktemp("cache")
        with LocalDaemon(DaemonOptions(backend=BACKEND, workers=1, cache_dir=folder)) as daemon:
            yield daemon, make_operator(folder / "double_it")


@pytest.mark.slow
@pytest.mark.parametrize("idea", of("wire"))
def test_hostile_frames_are_refused_and_the_daemon_serves_on(
    idea: dict[str, str], daemon: tuple[LocalDaemon, OpSpec]
) -> None:
    running, spec = daemon

    def header(kind: Kind, payload: bytes) -> list[bytes]:
        first, _ = encode(WireMessage(Kind.CANCEL, "hostile"))
        return [first.replace(Kind.CANCEL.value, kind.value, 1), payload]

    def request(changes: dict[str, Any]) -> bytes:
        return _merged(make_request(spec).model_dump(mode="json"), changes)

    frames = eval(idea["try"], {**vars(codec), "header": header, "request": request})
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.connect(running.address)
        dealer.send_multipart(frames)
        assert dealer.poll(int(1000 * DEADLINE_S))
        answer = decode(dealer.recv_multipart())
    assert isinstance(answer, WireMessage)
    assert answer.kind is Kind.REFUSED
    evaluator = ZmqEvaluator(running.address)
    try:
        assert evaluator.submit(make_request(spec)).result().status is Status.OK
    finally:
        evaluator.close()


def _merged(document: dict[str, Any], changes: dict[str, Any]) -> bytes:
    for key, value in changes.items():
        document[key] = {**document[key], **value} if isinstance(value, dict) else value
    return json.dumps(document).encode()
