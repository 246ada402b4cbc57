"""What the trusted side does to a candidate's text takes time in proportion to it, however hostile it is."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator

import pytest
from conftest import make_candidate

from ascend_gym.core.codec import MAX_PAYLOAD_BYTES, CodecError, Kind, WireMessage, decode, encode
from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.records import Candidate, Diagnostic, EvalResult, Phase, SourceFile, Sources
from ascend_gym.core.status import Status
from ascend_gym.rewrites.answer import candidate_from_answer
from ascend_gym.search.llm.tools import Toolbox
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
PAYLOAD_S = 0.6  # 0.12 where nothing else runs; before there were bounds the first of them took five
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


ANSWER_UNITS = {
    "fences": "```\n",
    "fences with a language": "```cpp\n",
    "other fences": "~~~\n",
    "fences that grow": "````\n```\n",
    "markdown in markdown": "```markdown\n",
    "blocks of markdown": "```markdown\n```\n",
    "search": "<<<<<<< SEARCH\n",
    "dividers": "=======\n",
    "replace": ">>>>>>> REPLACE\n",
    "empty edits": "<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n",
    "edits of no place": "<<<<<<< SEARCH\nnowhere\n=======\n\n>>>>>>> REPLACE\n",
    "edits of many places": "<<<<<<< SEARCH\n}\n=======\n\n>>>>>>> REPLACE\n",
    "edits of one place": "<<<<<<< SEARCH\nonce;\n=======\nonce;\n>>>>>>> REPLACE\n",
    "edits of a file": "### FILE: toy.cpp\n<<<<<<< SEARCH\nonce;\n=======\nonce;\n>>>>>>> REPLACE\n",
    "fenced edits": "```\n<<<<<<< SEARCH\n```\n```\n=======\n>>>>>>> REPLACE\n```\n",
    "files": "### FILE: op_kernel/toy.cpp\n```\n```\n",
    "headers": "### FILE: op_kernel/toy.cpp\n",
    "hints": "see op_kernel/toy.cpp\n```\nx\n```\n",
    "paths": "// op_kernel/toy.cpp\n",
    "endless paths": "-" * 290 + ".h\n",
    "entries": '```\nextern "C" __global__ __aicore__ void toy(\n```\n',
    "elisions": "// ... rest unchanged\n",
    "git": "diff --git a b\n",
    "hunks": "--- a/op_kernel/toy.cpp\n+++ b/op_kernel/toy.cpp\n@@ -1 +1 @@\n-once;\n+once;\n",
    "bare hunks": "@@\n",
    "patches": "*** Begin Patch\n",
    "updates": "*** Update File: op_kernel/toy.cpp\n@@\n-once;\n+once;\n",
    "additions": "*** Add File: op_kernel/toy.cpp\n+x\n",
    "tags": "</answer>\n",
    "thoughts": "<think></think>",
    "tools": "TOOL: lookup `",
    "blanks": " ",
    "a fence and blanks": "```" + " " * 500,
    "entities": "&lt;&gt;",
}
MEASURED = EvalResult(
    request_digest="",
    candidate_digest="",
    status=Status.CANCELLED,
    diagnostics=(Diagnostic(phase=Phase.SERVICE, message=""),),
)
ANSWER_CHARS = 4096
ANSWER_BEFORE = ("", "```\n", "<<<<<<< SEARCH\n", "### FILE: op_kernel/toy.cpp\n```cpp\n", "TOOL: lookup")
INCUMBENT_LINES = 200
ANSWER_FREE_S = 0.02


def incumbent(lines: int) -> Candidate:
    """Return a candidate of as many different lines, one that stands once, and as many braces."""
    kernel = "".join(f"int x{number} = {number};\n}}\n" for number in range(lines)) + "once;\n"
    return make_candidate(kernel=f'extern "C" __global__ __aicore__ void toy(GM_ADDR x)\n{{\n{kernel}')


def read_answer(answer: str, base: Candidate) -> None:
    candidate_from_answer(answer, base)
    Toolbox(MEASURED).reply(answer)


@pytest.mark.parametrize("name", ANSWER_UNITS)
def test_an_answer_is_read_in_time_linear_in_it_and_the_incumbent(name: str) -> None:
    unit = ANSWER_UNITS[name]

    def taken_s(before: str, end: str, factor: int, most_s: float = 0.0, times: int = 3) -> float:
        answer = before + unit * (factor * ANSWER_CHARS // len(unit)) + end
        base = incumbent(factor * INCUMBENT_LINES)
        return seconds(lambda text: read_answer(text, base), answer, most_s, times)

    for frame in itertools.product(ANSWER_BEFORE, ("", "\n>>>>>>> REPLACE\n", "\n```\n", "x")):
        if taken_s(*frame, FACTOR, ANSWER_FREE_S) > ANSWER_FREE_S:
            most_s = max(ANSWER_FREE_S, MOST_TIMES * taken_s(*frame, 1))
            assert taken_s(*frame, FACTOR, most_s, PATIENCE) <= most_s, frame


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
    [
        *(b'"k":1,', b"1,", b"[", b"{", b'{"a":', b'"', b'\\"', b"\\", b" ", b"9", b'"a",', b"null,"),
        *(b"a", b"\xc3\xa9", b"\xff", b"\\n", b'abcdefg\\"', b"\\u0041"),
    ],
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
