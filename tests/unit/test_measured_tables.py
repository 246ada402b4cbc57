"""Tables of measured figures are those of their data files, and these were measured at the present prices."""

from __future__ import annotations

from types import ModuleType

import pytest
from benchmark_modules import fidelity_benchmark


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    """Return the benchmark as a module."""
    fidelity_benchmark("fidelity_figure")  # which it imports
    return fidelity_benchmark("measured_tables")


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
