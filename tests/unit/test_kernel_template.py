"""How the entry of a kernel that is a template is read, and which headers belong to both sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascend_gym.core.records import SourceFile, Sources
from ascend_gym.suite.sources import read_candidate
from npu_daemon.simulator.kernel_build import Entry, entry_of, wrapper_source

ENTRY = "__global__ __aicore__ void k(GM_ADDR x) {}\n"


def sources(text: str) -> Sources:
    return Sources(files=(SourceFile(path="op_kernel/k.cpp", text=text),), main="op_kernel/k.cpp")


@pytest.mark.parametrize(
    ("before", "types"),
    [
        ('extern "C" ', None),
        ("template <typename T>\n", (True,)),
        ("template <typename T, class U = P<int, 3>, bool (*F)(int, int) = f>\n", (True, True, False)),
        ("template <int N> // of tiles, at most 8\ninline ", (False,)),
        ("template <>\n", ()),
        ("template <typename T> void other() {}\n", None),
        ("// template <typename T>\n", None),
        ('#if A\nextern "C" ' + ENTRY + "#else\ntemplate <uint8_t N>\n", (False,)),
    ],
)
def test_template_parameters_of_an_entry(before: str, types: tuple[bool, ...] | None) -> None:
    assert entry_of(sources(f"{before}{ENTRY}"), "k") == Entry("k", types)


def test_the_entry_with_the_name_of_the_operator_is_taken() -> None:
    text = f"template <int N>\n{ENTRY}{ENTRY.replace(' k', ' other')}"
    assert entry_of(sources(text), "other") == Entry("other")
    assert entry_of(sources(text), "unknown") == Entry("k", (False,))
    assert entry_of(sources("void k() {}"), "k") is None


def test_only_the_instance_of_a_key_is_built_if_there_is_one() -> None:
    one = wrapper_source(sources(ENTRY), Entry("k", (True, False)), tiling_key=2**64 - 1)
    every = wrapper_source(sources(ENTRY), Entry("k", (True, False)))
    assert "18446744073709551615ull" in one
    assert "asim_all_keys" not in one.partition("#define asim_call_")[2].partition("#pragma")[0]
    assert "asim_all_keys<asim_chooser" in every


def test_headers_of_the_kernel_that_host_files_include_belong_to_both_sides(tmp_path: Path) -> None:
    files = {
        "op_host/k.cpp": '#include "../op_kernel/key.h"\n#include <vector>\ngert::TilingContext',
        "op_kernel/key.h": '#include "inner/data.h"\n',
        "op_kernel/inner/data.h": "struct Data {};\n",
        "op_kernel/k.cpp": '#include "key.h"\n#include "own.h"\n__global__',
        "op_kernel/own.h": "",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    candidate = read_candidate(tmp_path, "k")
    assert [file.path for file in candidate.host.files] == [
        *("op_host/k.cpp", "op_kernel/inner/data.h", "op_kernel/key.h")
    ]
    assert len(candidate.kernel.files) == 4
