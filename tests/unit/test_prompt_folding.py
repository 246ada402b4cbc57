"""Licence headers are left out of prompts, and edits of what is shown apply to the whole file."""

import pytest
from conftest import make_candidate

from ascend_gym.rewrites.answer import candidate_from_answer
from ascend_gym.search.llm.prompts import folded, render_sources

BLOCK = "/*\n * Copyright (c) Somebody.\n * See the License.\n */\n"
LINES = "// Licensed to nobody\n// under terms\n"
CODE = "#include <x>\nint kernel = 1;\n"


@pytest.mark.parametrize(("header", "lines"), [(BLOCK, 4), (LINES, 2), (f"\n{BLOCK}// more\n", 6)])
def test_a_licence_header_is_told_in_a_line(header, lines):
    assert folded(header + CODE) == f"// lines 1 to {lines}: licence, left out\n{CODE}"


@pytest.mark.parametrize(
    "text", [CODE, f"// what this kernel does\n{CODE}", f"{CODE}{BLOCK}", "", BLOCK[:-3]]
)
def test_other_text_stays(text):
    assert folded(text) == text


def test_edits_of_what_is_shown_apply_to_the_whole_file():
    whole = make_candidate("int tiling = 0;\n", BLOCK + CODE)
    assert "Copyright" not in render_sources(whole, fold=True)
    assert "Copyright" in render_sources(whole)
    edit = "<<<<<<< SEARCH\nint kernel = 1;\n=======\nint kernel = 2;\n>>>>>>> REPLACE\n"
    changed = candidate_from_answer(f"### FILE: op_kernel/toy.cpp\n{edit}", whole)
    assert changed.kernel_text == BLOCK + CODE.replace("= 1", "= 2")
