"""Tables of measured figures are those of their data files, and these were measured at the present prices.

``python tests/unit/test_measured_tables.py`` records the sources of the pricing program as they are, after
``PRICE_VERSION`` was raised or because no price can change.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parents[1]
RECORD = TESTS / "data" / "price_sources.json"
sys.path.append(str(TESTS))  # for who runs this file

from benchmark_modules import fidelity_benchmark  # noqa: E402


def _tables() -> ModuleType:
    fidelity_benchmark("fidelity_figure")  # which it imports
    return fidelity_benchmark("measured_tables")


def _present(tables: ModuleType) -> dict[str, object]:
    return {"version": tables.PRICE_VERSION, "sources": tables.price_sources()}


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    """Return the benchmark as a module."""
    return _tables()


def test_a_change_of_the_pricing_program_says_whether_prices_can_change(tables: ModuleType) -> None:
    recorded = json.loads(RECORD.read_text("utf-8"))
    assert _present(tables) == recorded, (
        "the pricing program changed. If prices can change, raise PRICE_VERSION in "
        "benchmarks/fidelity/measured_tables.py and measure the tables again. Then run "
        "'python tests/unit/test_measured_tables.py'"
    )


def test_every_data_file_was_measured_at_the_present_prices(tables: ModuleType) -> None:
    assert list(tables.TABLES.glob("*.json"))
    old = {name: tables.read(name)["command"] for name in tables.stale()}
    assert not old, f"prices changed: measure again, then run benchmarks/fidelity/measured_tables.py: {old}"


def test_every_page_has_the_tables_of_its_data(tables: ModuleType) -> None:
    pages = tables.pages()
    assert pages
    differing = [page.name for page, text in pages.items() if page.read_text("utf-8") != text]
    assert not differing, "run benchmarks/fidelity/measured_tables.py"


def test_a_price_that_changed_makes_data_stale(tables: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tables.price_digest()
    tables.price_digest.cache_clear()
    monkeypatch.setattr(tables, "shipped_digests", lambda: ["other"])
    try:
        assert tables.price_digest() != before
        assert tables.stale() == sorted(file.stem for file in tables.TABLES.glob("*.json"))
    finally:
        tables.price_digest.cache_clear()


if __name__ == "__main__":
    RECORD.write_text(json.dumps(_present(_tables()), indent=1) + "\n", encoding="utf-8")
