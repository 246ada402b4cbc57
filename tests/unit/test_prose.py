"""Words and sentences are counted as the command says; the picture is the one that its program draws."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

SITE = Path(__file__).resolve().parents[2] / "docs" / "site"


@pytest.fixture(scope="module")
def prose() -> dict[str, Any]:
    return runpy.run_path(str(SITE / "prose.py"))


def test_words_and_sentences_are_counted(prose: dict[str, Any], tmp_path: Path) -> None:
    text = (
        "# Title\n\nOne two `three`. Four five:\n\n- six seven\n\n```sh\nnot counted here\n```\n\n| a | b |\n"
    )
    (tmp_path / "page.md").write_text(text + "<!-- table x -->\n| not a word |\n<!-- end of table -->\n")
    (page,) = prose["pages"](tmp_path)
    assert page.sentences == ("One two `three`.", "Four five:", "six seven")
    assert page.words == len(text.split())
    assert page.mean == pytest.approx(7 / 3)


def test_the_pages_keep_the_limits_of_words_and_sentences(prose: dict[str, Any]) -> None:
    assert prose["problems"](prose["pages"](SITE.parent)) == []


def test_what_exceeds_a_limit_is_told(prose: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "long.md").write_text(f"{'word ' * 30}end. Short.")
    (tmp_path / "very_long.md").write_text(f"{'word ' * 60}end. Short.")
    assert [each.partition(":")[0] for each in prose["problems"](prose["pages"](tmp_path))] == [
        "very_long.md"
    ]
    assert prose["problems"](prose["pages"](tmp_path), most_words=90)[-1] == "94 words, at most 90"


def test_the_picture_is_the_one_that_its_program_draws() -> None:
    drawn = runpy.run_path(str(SITE / "architecture_picture.py"))["picture"]()
    assert (SITE.parent / "architecture.svg").read_text("utf-8") == drawn
