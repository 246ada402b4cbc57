"""The ledger under any operations: spent + reserved never exceeds the budget, and nothing gets lost."""

from fractions import Fraction

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ascend_gym.core.errors import BudgetExceededError
from ascend_gym.search.ledger import Budget, BudgetLedger, Cost

# Eighths are exact in binary, so that sums can be compared exactly.
_SECONDS = st.integers(0, 80).map(lambda eighths: eighths / 8)
_CHARGES = st.builds(lambda n, s: Cost(evaluations=n, device_seconds=s), st.integers(0, 4), _SECONDS)


class LedgerMachine(RuleBasedStateMachine):
    @initialize(evaluations=st.integers(0, 12), seconds=st.one_of(st.none(), _SECONDS))
    def open(self, evaluations, seconds):
        self.budget = Budget(evaluations, seconds)
        self.ledger = BudgetLedger(self.budget)
        self.open_reservations = []
        self.spent = (0, Fraction(0))

    @rule(amount=_CHARGES)
    def reserve(self, amount):
        fits = self.ledger.can_reserve(amount)
        left = (
            self.budget.evaluations
            - self.spent[0]
            - sum(r.amount.evaluations for r in self.open_reservations)
        )
        if self.budget.device_seconds is None:
            assert fits == (amount.evaluations <= left)
        if fits:
            self.open_reservations.append(self.ledger.reserve(amount))
        else:
            with pytest.raises(BudgetExceededError):
                self.ledger.reserve(amount)

    @precondition(lambda self: self.open_reservations)
    @rule(data=st.data())
    def charge(self, data):
        reservation = data.draw(st.sampled_from(self.open_reservations))
        amount = reservation.amount
        actual = Cost(
            evaluations=data.draw(st.integers(0, amount.evaluations)),
            device_seconds=data.draw(st.integers(0, int(amount.device_seconds * 8))) / 8,
        )
        self.ledger.charge(reservation, actual)
        self.open_reservations.remove(reservation)
        self.spent = (self.spent[0] + actual.evaluations, self.spent[1] + Fraction(actual.device_seconds))

    @precondition(lambda self: self.open_reservations)
    @rule(data=st.data())
    def refund(self, data):
        reservation = data.draw(st.sampled_from(self.open_reservations))
        self.ledger.refund(reservation)
        self.open_reservations.remove(reservation)

    @invariant()
    def accounts_are_exact_and_within_the_budget(self):
        spent, reserved = self.ledger.spent, self.ledger.reserved
        assert (spent.evaluations, Fraction(spent.device_seconds)) == self.spent
        assert reserved.evaluations == sum(r.amount.evaluations for r in self.open_reservations)
        assert spent.evaluations + reserved.evaluations <= self.budget.evaluations
        if self.budget.device_seconds is not None:
            assert spent.device_seconds + reserved.device_seconds <= self.budget.device_seconds


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=40, stateful_step_count=25)
