"""Casts that a source spells are told from conversions that it does not."""

import pytest

from npu_daemon.simulator.kernel_ir.device_language import spells_cast


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("static_cast<float>(|n)", True),
        ("static_cast< const half >( |(n + 1))", True),
        ("(T) |n", True),
        ("(float) /* größer, 大 */ |(n * n)", True),
        ("(float)\n    |n", True),
        ("T{|n}", True),
        ("0.5f * |n", False),
        ("(float)1.0 / |(n * n)", False),
        ("static_cast<float>(m) * |n", False),
        ("sum / |(N)", False),
        ("// (float)\n|n", False),
    ],
)
def test_a_cast_stands_right_in_front_of_what_is_converted(text: str, spelt: bool) -> None:
    before, _, after = text.partition("|")
    line = before.count("\n") + 1
    column = len(before.rpartition("\n")[2].encode()) + 1
    assert spells_cast(before + after, line, column) is spelt


def test_a_place_that_is_not_in_the_source_spells_nothing() -> None:
    assert not spells_cast("(float)n", 2, 1)
