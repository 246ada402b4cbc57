"""The budget ledger: reserve, charge, refund."""

import pytest

from ascend_gym.core.errors import BudgetExceededError, MisuseError
from ascend_gym.search.ledger import Budget, BudgetLedger, Cost

ONE = Cost(evaluations=1)


def test_charge_spends_and_gives_the_rest_back():
    ledger = BudgetLedger(Budget(2, device_seconds=10.0))
    reservation = ledger.reserve(Cost(evaluations=1, device_seconds=6.0))
    assert ledger.reserved == Cost(evaluations=1, device_seconds=6.0)
    assert not ledger.can_reserve(Cost(evaluations=1, device_seconds=6.0))
    ledger.charge(reservation, Cost(evaluations=1, device_seconds=2.5))
    assert ledger.spent == Cost(evaluations=1, device_seconds=2.5)
    assert ledger.reserved == Cost()
    assert ledger.can_reserve(Cost(evaluations=1, device_seconds=7.5))


def test_refund_leaves_the_budget_as_it_was():
    ledger = BudgetLedger(Budget(1))
    ledger.refund(ledger.reserve(ONE))
    assert ledger.spent == ledger.reserved == Cost()
    assert ledger.can_reserve(ONE)


def test_a_reservation_that_would_overshoot_is_refused_with_what_is_left():
    ledger = BudgetLedger(Budget(3))
    ledger.charge(ledger.reserve(ONE), ONE)
    ledger.reserve(ONE)
    with pytest.raises(BudgetExceededError, match="2 evaluations asked for, 1 of 3 left"):
        ledger.reserve(Cost(evaluations=2))
    assert ledger.reserved == ONE


def test_device_seconds_are_refused_like_evaluations():
    ledger = BudgetLedger(Budget(100, device_seconds=1.0))
    with pytest.raises(BudgetExceededError, match="device_seconds"):
        ledger.reserve(Cost(evaluations=1, device_seconds=1.5))


def test_what_a_reservation_lacks_is_taken_from_the_budget_left():
    ledger = BudgetLedger(Budget(5, device_seconds=5.0))
    reservation = ledger.reserve(Cost(evaluations=1, device_seconds=1.0))
    ledger.charge(reservation, Cost(evaluations=1, device_seconds=5.0))
    assert (ledger.spent, ledger.reserved) == (Cost(evaluations=1, device_seconds=5.0), Cost())


def test_costing_more_than_is_left_is_refused_and_spends_the_reservation():
    ledger = BudgetLedger(Budget(5, device_seconds=5.0))
    other = ledger.reserve(Cost(evaluations=1, device_seconds=4.0))
    reservation = ledger.reserve(Cost(evaluations=1, device_seconds=1.0))
    with pytest.raises(BudgetExceededError, match="more was spent than was reserved"):
        ledger.charge(reservation, Cost(evaluations=1, device_seconds=1.1))
    assert (ledger.spent, ledger.reserved) == (reservation.amount, other.amount)


def test_what_was_reserved_can_be_charged_whatever_the_sums_round_to():
    ledger = BudgetLedger(Budget(10, usd=0.6))
    reservations = [ledger.reserve(Cost(usd=usd)) for usd in (0.3, 0.2, 0.1)]
    for reservation in reservations:
        ledger.charge(reservation, reservation.amount)
    assert ledger.spent.usd == pytest.approx(0.6)


def test_unlimited_resources_are_counted_but_not_limited():
    ledger = BudgetLedger(Budget(1))
    ledger.charge(ledger.reserve(ONE), Cost(evaluations=1, device_seconds=99.0))
    assert ledger.spent.device_seconds == 99.0


@pytest.mark.parametrize("settle", ["charge", "refund"])
def test_a_reservation_is_settled_once(settle):
    ledger = BudgetLedger(Budget(5))
    reservation = ledger.reserve(ONE)
    ledger.charge(reservation, ONE)
    with pytest.raises(MisuseError, match="not open"):
        ledger.charge(reservation, ONE) if settle == "charge" else ledger.refund(reservation)
    assert ledger.spent == ONE


def test_what_is_missing_is_told_in_six_digits_and_counts_in_full():
    ledger = BudgetLedger(Budget(1, tokens=12345678, usd=0.3))
    ledger.charge(ledger.reserve(Cost(usd=0.1)), Cost(usd=0.1))
    with pytest.raises(BudgetExceededError, match=r"^0\.7 usd asked for, 0\.2 of 0\.3 left$"):
        ledger.reserve(Cost(usd=0.7))
    with pytest.raises(BudgetExceededError, match="12345679 tokens asked for, 12345678 of 12345678 left"):
        ledger.reserve(Cost(tokens=12345679))


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize("budget", [(-1, None), (1, -0.5), (1, NAN), (1, INFINITY), (1, None, None, NAN)])
def test_budgets_that_limit_nothing_or_less_are_refused(budget):
    with pytest.raises(MisuseError, match="not negative"):
        Budget(*budget)
