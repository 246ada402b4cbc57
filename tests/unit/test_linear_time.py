"""What the trusted side does to a candidate's text takes time in proportion to it, however hostile it is."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest

from ascend_gym.core.codec import MAX_PAYLOAD_BYTES, CodecError, Kind, WireMessage, decode, encode
from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import Phase, SourceFile, Sources
from ascend_gym.suite.cann_opdef import defines_operator, read_opdef
from npu_daemon.backends.simulator import includes_collectives
from npu_daemon.simulator.compiler_errors import parse_compiler_errors
from npu_daemon.simulator.kernel_build import entry_of, with_gm_arrays, without_launches
from npu_daemon.simulator.places import own_place
from npu_daemon.simulator.task_type import task_types

pytestmark = pytest.mark.slow

SMALL_CHARS, FACTOR = 512, 8
FREE_S = 0.005
PATIENCE = 20  # times that a neighbour on the same core may be in the way
MOST_TIMES = 2.5 * FACTOR  # for eight times the text; a quadratic reader takes 64 times as long
PAYLOAD_BYTES = MAX_PAYLOAD_BYTES
PAYLOAD_S = 1.0  # ten times what it takes alone; before there were bounds the first of them took five
UNITS = (
    *(
        " ",
        "\t",
        "\n",
        "\r",
        "a",
        "0",
        "(",
        "<",
        "{",
        "[",
        ";",
        "#",
        "\\",
        '"',
        "'",
        "/",
        "*",
        ":",
        "=",
        "a ",
        "a\n",
    ),
    *(
        "/*",
        "//",
        '\\"',
        "\\\n",
        '"\\',
        "# include",
        "a<<<",
        "<<<",
        ">>>",
        ">>> (",
        "a <<<;",
        "const ",
        "static ",
        "volatile ",
    ),
    *(
        "static __gm__ int a[",
        "const static __gm__ int ",
        "static __gm__ a ",
        "__global__ ",
        "__global__ __aicore__ void a ",
    ),
    *(
        "__mix__ (",
        "__mix__ ( 1",
        "Matmul ",
        "LoadData<",
        "Fixpipe <",
        "KERNEL_TYPE_",
        "class A : ",
        "class A : public ops::OpDef ",
    ),
    *(
        'Input("x")',
        'Input( "x" )',
        ".DataType({",
        ".DataType( x ",
        ".DataType({DT_FLOAT",
        "x = {",
        "x {",
        ".Int(",
        ".AttrType(OPTIONAL)",
    ),
    *("op_kernel/", "op_kernel/a:", "a:1: error: ", "a:1:1:", "undefined reference to ", "error: ", "this->"),
)
OPDEF = 'class A : public OpDef { this->Input("x").DataType(x);'


def sources(text: str) -> Sources:
    return Sources(files=(SourceFile(path="op_kernel/a.cpp", text=text),), main="op_kernel/a.cpp")


def read_definition(text: str) -> None:
    for body in (text, f"{OPDEF} {text}", f"{OPDEF} }}; x {text}"):
        with contextlib.suppress(OperatorFormatError):
            read_opdef(body, "here")


READERS: dict[str, Callable[[str], object]] = {
    "entry_of": lambda text: entry_of(sources(text), "a"),
    "without_launches": without_launches,
    "with_gm_arrays": with_gm_arrays,
    "task_types": task_types,
    "defines_operator": defines_operator,
    "read_opdef": read_definition,
    "includes_collectives": includes_collectives,
    "parse_compiler_errors": lambda text: parse_compiler_errors(text, sources(text), Phase.BUILD_KERNEL),
    "own_place": lambda text: own_place(text.splitlines()),
}


def hostile_texts(chars: int) -> Iterator[tuple[str, str]]:
    """Yield each unit again and again, after each other one, and in turn with each blank or sign."""
    for first in UNITS:
        for unit in UNITS:
            yield f"{first!r}, then {unit!r} repeated", first + unit * (chars // len(unit))
        for sign in (unit for unit in UNITS if len(unit) == 1):
            yield f"{first + sign!r} repeated", (first + sign) * (chars // len(first + sign))


def seconds(reader: Callable[[str], object], text: str, most_s: float = 0.0, times: int = 3) -> float:
    """Return the CPU time that a reader takes, the least of several where it is above ``most_s``."""
    taken: list[float] = []
    while len(taken) < times and (not taken or min(taken) > most_s):
        started_s = time.process_time()
        reader(text)
        taken.append(time.process_time() - started_s)
    return min(taken)


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_linear_time(name: str) -> None:
    reader = READERS[name]
    texts = zip(hostile_texts(SMALL_CHARS), hostile_texts(SMALL_CHARS * FACTOR), strict=True)
    for (what, small), (_, large) in texts:
        if seconds(reader, large, FREE_S) > FREE_S:
            most_s = max(FREE_S, MOST_TIMES * seconds(reader, small))
            assert seconds(reader, large, most_s, PATIENCE) <= most_s, what


@pytest.mark.parametrize(
    "unit",
    [b'"k":1,', b"1,", b"[", b"{", b'{"a":', b'"', b'\\"', b"\\", b" ", b"9", b'"a",', b"null,"],
    ids=repr,
)
@pytest.mark.parametrize("before", [b"", b"{", b'{"case_ids":[', b'{"op_id":"'], ids=repr)
def test_a_malformed_payload_holds_the_broker_for_moments(before: bytes, unit: bytes) -> None:
    (header, _) = encode(WireMessage(Kind.CANCEL, "request"))
    submit = header.replace(Kind.CANCEL.value, Kind.SUBMIT.value, 1)
    payload = (before + unit * (PAYLOAD_BYTES // len(unit)))[:PAYLOAD_BYTES]
    refused = decode([submit, payload])
    assert isinstance(refused, CodecError)
    assert refused.request_id == "request"
    assert len(refused.reason) < 3000
    assert seconds(lambda _: decode([submit, payload]), "", PAYLOAD_S) <= PAYLOAD_S
