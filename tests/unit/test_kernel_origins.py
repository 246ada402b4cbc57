"""Whose text a call is in: what debug information says, and what it says only of files that are not real."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from npu_daemon.simulator.kernel_ir.headers import header_marks
from npu_daemon.simulator.kernel_ir.origins import Origins

API, MACHINE = "/asim/asim/api/tensor.h", "/asim/asim/machine/queue.h"
DIGEST = hashlib.md5(b"text").hexdigest()
EMIT = "_ZN4asim4emitEv"
NODES = {
    "1": f'!DIFile(filename: "{API}", directory: "", checksumkind: CSK_MD5, checksum: "{DIGEST}")',
    "2": f'!DIFile(filename: "{MACHINE}", directory: "", checksumkind: CSK_MD5, checksum: "{DIGEST}")',
    "3": f'!DIFile(filename: "kernel.h", directory: "/kernel", checksumkind: CSK_MD5, checksum: "{DIGEST}")',
    "4": f'!DIFile(filename: "{API}", directory: "")',
    "5": f'!DIFile(filename: "{API}", directory: "", checksumkind: CSK_MD5, checksum: "{"0" * 32}")',
    **{
        str(10 + file): f'distinct !DISubprogram(name: "f", scope: !{file}, file: !{file})'
        for file in range(1, 6)
    },
    "21": "distinct !DILexicalBlock(scope: !11, file: !3, line: 4)",
    "22": "!DILexicalBlockFile(scope: !13, file: !1, discriminator: 0)",
    "30": "!DILocation(line: 1, scope: !13)",  # the candidate's
    "31": "!DILocation(line: 1, scope: !11, inlinedAt: !30)",
    "32": "distinct !DILocation(line: 1, column: 2, scope: !12, inlinedAt: !31)",
    "33": "!DILocation(line: 1, scope: !12, inlinedAt: !30)",
    "34": "!DILocation(line: 1, scope: !14)",
    "35": "!DILocation(line: 1, scope: !15)",
    "36": "!DILocation(line: 0, scope: !13)",
    "37": "!DILocation(line: 9, scope: !21, inlinedAt: !30)",
    "38": "!DILocation(line: 9, scope: !22)",
    "39": "!DILocation(line: 9, scope: !12)",
    "40": "distinct !DILocation(line: 9, scope: !11, inlinedAt: !40)",
    "41": "distinct !DILocation(line: 9, scope: !11)",
    "42": "!DILocation(line: 9, scope: !12, inlinedAt: !41)",
}


@pytest.mark.parametrize(
    ("number", "of_ascend_c"),
    [
        pytest.param("31", True, id="a function of Ascend C in one of the kernel"),
        pytest.param("32", True, id="the inside in a function of Ascend C"),
        pytest.param("37", True, id="a block of a function of Ascend C"),
        pytest.param("41", True, id="a function of Ascend C that nothing was made part of"),
        pytest.param("42", True, id="the inside in such a function"),
        pytest.param("39", False, id="a function of the inside, which anybody may call by its name"),
        pytest.param("30", False, id="the kernel"),
        pytest.param("33", False, id="the inside in a function of the kernel"),
        pytest.param("34", False, id="a name without a digest"),
        pytest.param("35", False, id="a file of the same name"),
        pytest.param("36", False, id="no line"),
        pytest.param("38", False, id="a block that says that it is in another file"),
        pytest.param("40", False, id="an endless chain"),
        pytest.param("99", False, id="no such node"),
        pytest.param("", False, id="no place"),
    ],
)
def test_a_call_is_of_whom_its_function_is(number: str, of_ascend_c: bool) -> None:
    origins = Origins(NODES, {f"{API} {DIGEST}": {"emit"}, f"{MACHINE} {DIGEST}": {"emit"}})
    assert origins.in_ascend_c(f"!{number}" if number else "", EMIT) is of_ascend_c


@pytest.mark.parametrize(
    ("number", "named_by", "of_ascend_c"), [("31", API, True), ("32", MACHINE, True), ("32", API, False)]
)
def test_the_innermost_header_names_what_is_called(number: str, named_by: str, of_ascend_c: bool) -> None:
    headers: dict[str, set[str]] = {f"{API} {DIGEST}": set(), f"{MACHINE} {DIGEST}": set()}
    headers[f"{named_by} {DIGEST}"].add("emit")
    assert Origins(NODES, headers).in_ascend_c(f"!{number}", EMIT) is of_ascend_c


def test_headers_that_kernels_read_are_marked_by_path_and_content_with_what_they_name(tmp_path: Path) -> None:
    texts = {
        "asim_kernel.h": '#include "kernel_operator.h"\n#include <cstdint>\n',
        "kernel/kernel_operator.h": '#include "asim/api/tensor.h"\n',
        "asim/api/tensor.h": '#include "asim/list.def"\nauto f() { return "spoken" + emit(); }  // emitter',
        "asim/api/matmul.h": '#include "emitter/matmul_config.h" /* emitter */\n#include "matmul_config.h"',
        "asim/api/matmul_config.h": "",
        "asim/list.def": "emit",
        "asim/timing/core.h": "emit",  # of the pricing program
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    read = sorted(set(texts) - {"asim/list.def", "asim/timing/core.h"})
    digests = {name: hashlib.md5(texts[name].encode()).hexdigest() for name in read}
    marks = header_marks(tmp_path, {EMIT, "_ZN4asim7emitterEv", "_ZN4asim6spokenEv"})
    assert marks == {
        f"/asim/{name} {digests[name]}": (["emit"] if name == "asim/api/tensor.h" else []) for name in read
    }
