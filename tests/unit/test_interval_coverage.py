"""The simulation of interval coverage: its own arithmetic, and the rule at the smallest useful size."""

import numpy as np
import pytest
from benchmark_modules import methods_benchmark

bench = methods_benchmark("interval_coverage")


@pytest.mark.parametrize("operators", [3, 12])
@pytest.mark.parametrize("number", [0, 3])
def test_intervals_cover_what_they_claim(operators, number):
    """400 draws: 95 % is known to about 2.2 % (two standard errors)."""
    found = bench.coverage(bench.MODELS[number], operators, 400)
    assert 0.92 <= found["geometric_mean"] <= 0.99
    assert found["none"] == 0


def test_an_interval_that_is_too_narrow_is_noticed(monkeypatch):
    narrow = bench.geometric_mean

    def halved(table):
        found = narrow(table)
        return type(found)(found.value, (found.low * found.value) ** 0.5, (found.high * found.value) ** 0.5)

    monkeypatch.setattr(bench, "geometric_mean", halved)
    assert bench.coverage(bench.MODELS[0], 8, 200)["geometric_mean"] < 0.9


def test_equal_methods_are_rarely_told_apart_and_different_ones_are():
    assert bench.equal_methods(bench.MODELS[0], 8, 40) <= 0.2
    generator = np.random.default_rng(1)
    slow, fast = (generator.normal(mean, 0.01, (8, 3)) for mean in (0.0, 0.1))
    assert bench.paired_test(np.exp(fast).tolist(), np.exp(slow).tolist()).p_value < 0.05


def test_the_command_prints_its_tables(monkeypatch, capsys, tmp_path):
    path = tmp_path / "figures.json"
    command = ["interval_coverage.py", "--draws", "2", "--equal-draws", "1", "--json", str(path)]
    monkeypatch.setattr("sys.argv", command)
    assert bench.main() == 0
    out = capsys.readouterr().out
    assert out.count("| normal: ") == 3
    assert out.count("| normal |") == 1
    assert path.exists()
