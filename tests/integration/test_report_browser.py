"""The report in a real browser, at the sizes of a desk and of a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import fill
from typer.testing import CliRunner

from ascend_gym.cli import app

pytestmark = pytest.mark.slow

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")
# The layout depends on the width, contrasts depend on the scheme.
SCREENS = ((1280, "light"), (390, "dark"))
SMALLEST_TEXT_PIXELS = 8.5
_TABLES_WITHOUT_HINT = """[...document.querySelectorAll(".wide")]
    .filter(table => table.scrollWidth > table.clientWidth + 2 && innerWidth < 600)
    .filter(table => !table.previousElementSibling.querySelector(".hint"))
    .map(table => table.getAttribute("aria-label"))"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    fill(folder / "results.sqlite", operators=4, seeds=2, budget=10)
    arguments = ["report", "--store", str(folder / "results.sqlite"), "--html", str(folder / "report.html")]
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, outcome.output
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    with playwright.sync_playwright() as running:
        if program is None and not Path(running.chromium.executable_path).exists():
            pytest.skip("no Chromium in PATH, nor one that playwright has installed")
        try:
            opened = running.chromium.launch(executable_path=program, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"Chromium does not start: {error.message[:80]}")
        yield opened
        opened.close()


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_it_can_be_read_and_clicked_through(browser: Any, report: Path, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    for link in page.locator("nav a").all():
        link.click()
        assert page.locator(str(link.get_attribute("href"))).is_visible()
    for summary in page.locator("summary").all():
        summary.click()
    drawings = page.locator("svg").all()
    assert len(drawings) >= 8
    assert all(drawing.is_visible() for drawing in drawings)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    assert page.evaluate(_TABLES_WITHOUT_HINT) == [], "a table scrolls and does not say so"
    assert (page.locator(".hint >> visible=true").count() > 0) == (width < 600)
    assert _smallest_text_pixels(page) >= SMALLEST_TEXT_PIXELS
    assert _weakest_contrast(page) >= 4.5
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    page.close()


def test_it_prints_on_paper_whatever_the_screen(browser: Any, report: Path) -> None:
    page = browser.new_page(color_scheme="dark")
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("nav").is_hidden()
    assert page.pdf().startswith(b"%PDF")
    page.close()


def _smallest_text_pixels(page: Any) -> float:
    """Return the size of the smallest writing as shown, with drawings scaled."""
    return float(
        page.evaluate(
            """() => Math.min(...[...document.querySelectorAll('svg text')].map(text => {
                const drawing = text.ownerSVGElement;
                const scale = drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width;
                return parseFloat(getComputedStyle(text).fontSize) * scale;
            }), ...[...document.querySelectorAll('p, td, th, pre')].map(
                each => parseFloat(getComputedStyle(each).fontSize)))"""
        )
    )


def _weakest_contrast(page: Any) -> float:
    """Return the smallest contrast of writing to the page's ground (WCAG 2.1, relative luminance)."""
    return float(
        page.evaluate(
            """() => {
                const light = colour => {
                    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(part => {
                        const share = part / 255;
                        return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
                    });
                    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
                };
                const ground = light(getComputedStyle(document.body).backgroundColor);
                const written = document.querySelectorAll('p, td, th, a, small, h2, pre span');
                return Math.min(...[...written].map(each => {
                    const own = light(getComputedStyle(each).color);
                    return (Math.max(own, ground) + 0.05) / (Math.min(own, ground) + 0.05);
                }));
            }"""
        )
    )
