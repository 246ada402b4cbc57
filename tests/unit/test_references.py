"""What the project's texts and sources point to is there."""

from __future__ import annotations

import re
import runpy
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TEXT = {".md", ".py", ".toml", ".h", ".cpp", ".def", ".json", ".txt"}
_PAGE = re.compile(r"\bdocs/[\w/]+\.md\b")
_LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[\w-]*)?\)")
_ANCHOR_LINK = re.compile(r"\]\(([^)#\s:]*)#([\w-]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_ANCHOR = re.compile(r'<a (?:id|name)="([\w-]+)"')
_OUTSIDE = re.compile(r"\.\./shared|\bfacts section \d|\bfacts/\w+\.md|\bDESIGN\.md")


def _texts() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    paths = [ROOT / name for name in listed.decode().split("\0") if name]
    return [path for path in paths if path.suffix in _TEXT and path != Path(__file__) and path.is_file()]


@cache
def _made() -> dict[Path, str]:
    """Return the pages that the site makes when it is built."""
    pages = runpy.run_path(str(ROOT / "docs/site/generated_pages.py"))["pages"]()
    return {ROOT / "docs" / path: text for path, text in pages.items()}


def test_pages_that_are_cited_exist() -> None:
    missing = {
        f"{path.relative_to(ROOT)}: {page}"
        for path in _texts()
        for page in _PAGE.findall(path.read_text("utf-8"))
        if not (ROOT / page).exists()
    }
    assert not missing


def test_links_between_pages_lead_somewhere() -> None:
    missing = {
        f"{path.relative_to(ROOT)}: {target}"
        for path in _texts()
        if path.suffix == ".md"
        for target in _LINK.findall(path.read_text("utf-8"))
        if not (path.parent / target).exists() and path.parent / target not in _made()
    }
    assert not missing


def _anchors(page: Path) -> set[str]:
    """Return what a link may name on a page: its headings, as GitHub writes them, and anchors of its own."""
    text = page.read_text("utf-8") if page.exists() else _made()[page]
    headings = (re.sub(r"[^\w\- ]", "", heading.lower()).strip() for heading in _HEADING.findall(text))
    return {heading.replace(" ", "-") for heading in headings} | set(_ANCHOR.findall(text))


def test_links_into_pages_name_a_heading() -> None:
    missing = {
        f"{path.relative_to(ROOT)}: {target}#{anchor}"
        for path in _texts()
        if path.suffix == ".md"
        for target, anchor in _ANCHOR_LINK.findall(path.read_text("utf-8"))
        if anchor not in _anchors(path.parent / target if target else path)
    }
    assert not missing


def test_no_source_is_outside_the_repository() -> None:
    cited = {
        f"{path.relative_to(ROOT)}: {found.group()}"
        for path in _texts()
        if (found := _OUTSIDE.search(path.read_text("utf-8")))
    }
    assert not cited


def test_every_setting_of_the_reference_says_what_it_means() -> None:
    rows = [line.split("|")[1:-1] for line in _made()[ROOT / "docs/reference/settings.md"].splitlines()]
    settings = [[cell.strip() for cell in row] for row in rows if row]
    assert any(row[0] == "`quota.max_queued`" for row in settings)
    assert [row for row in settings if not all(row)] == []
