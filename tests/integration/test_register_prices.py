"""What a read of a vector register costs, on traces made by hand."""

from __future__ import annotations

import pytest
from traces import Pricer, S, V, idle_scalar, maximum, read_register, set_flag, vector, wait_flag


@pytest.mark.parametrize("vectors_meanwhile", [0, 40])
def test_reading_a_register_without_flags_saves_nothing(pricer: Pricer, vectors_meanwhile: int) -> None:
    """Own flags are paid once, and what the vector unit is given after them is not waited for."""
    meanwhile = vector("Exp", (0x8000, 0x8000), 8) * vectors_meanwhile
    raised, awaited = set_flag(V, S), wait_flag(V, S)
    own, none, unread = (
        pricer.task_us([(maximum(0, 8) + first + meanwhile + second + third) * 20])
        for first, second, third in (
            (raised, awaited, read_register()),
            (idle_scalar(), idle_scalar(), read_register()),
            (raised, awaited, idle_scalar()),
        )
    )
    assert none >= own
    assert own == unread


def test_reading_a_register_waits_for_the_instruction_that_set_it(pricer: Pricer) -> None:
    read, unread, of_another = (
        pricer.task_us([(maximum(0, 100) + scalar) * 20 + idle_scalar() * 400])
        for scalar in (read_register(), idle_scalar(), read_register(1))
    )
    assert read > unread
    assert of_another == unread
