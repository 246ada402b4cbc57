"""The budget of a search: reserve before acting, then charge what it cost or refund it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from ascend_gym.core.errors import BudgetExceededError, MisuseError
from ascend_gym.core.records import Charge

_RESOURCES = ("evaluations", "device_seconds")


@dataclass(frozen=True)
class Budget:
    """What a search may spend; ``None`` leaves a resource unlimited.

    Attributes:
        evaluations: evaluations that may be charged.
        device_seconds: seconds of device time that may be charged.
    """

    evaluations: int
    device_seconds: float | None = None

    def __post_init__(self) -> None:
        """Refuse budgets that can never be spent."""
        if self.evaluations < 0 or (self.device_seconds is not None and self.device_seconds < 0):
            raise MisuseError(f"a budget cannot be negative, got {self}")


@dataclass(frozen=True)
class Reservation:
    """Part of the budget that is set aside until it is charged or refunded."""

    ticket: int
    amount: Charge


class BudgetLedger:
    """Accounts for every unit of a budget: spent + reserved never exceeds it.

    Not for use from several threads.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._spent = Charge()
        self._open: dict[int, Reservation] = {}
        self._tickets = count(1)

    @property
    def budget(self) -> Budget:
        """The whole budget."""
        return self._budget

    @property
    def spent(self) -> Charge:
        """What has been charged."""
        return self._spent

    @property
    def reserved(self) -> Charge:
        """What is set aside by open reservations."""
        return _total(Charge(), *(reservation.amount for reservation in self._open.values()))

    def can_reserve(self, amount: Charge) -> bool:
        """Say whether ``reserve(amount)`` would succeed."""
        return self._shortage(amount) is None

    def reserve(self, amount: Charge) -> Reservation:
        """Set ``amount`` aside: the most that the coming work can cost.

        Raises:
            BudgetExceededError: the budget left does not cover it; nothing is set aside.
        """
        shortage = self._shortage(amount)
        if shortage is not None:
            raise BudgetExceededError(shortage)
        reservation = Reservation(next(self._tickets), amount)
        self._open[reservation.ticket] = reservation
        return reservation

    def charge(self, reservation: Reservation, actual: Charge) -> None:
        """Spend ``actual`` of a reservation and give the rest back.

        Raises:
            BudgetExceededError: a limited resource cost more than was reserved; the reservation stays open.
            MisuseError: the reservation was charged or refunded before.
        """
        self._check_open(reservation)
        for resource in self._limited():
            cost, reserved = getattr(actual, resource), getattr(reservation.amount, resource)
            if cost > reserved:
                raise BudgetExceededError(f"{cost} {resource} cost, but only {reserved} were reserved")
        del self._open[reservation.ticket]
        self._spent = _total(self._spent, actual)

    def refund(self, reservation: Reservation) -> None:
        """Give a whole reservation back.

        Raises:
            MisuseError: the reservation was charged or refunded before.
        """
        self._check_open(reservation)
        del self._open[reservation.ticket]

    def _limited(self) -> list[str]:
        return [resource for resource in _RESOURCES if getattr(self._budget, resource) is not None]

    def _shortage(self, amount: Charge) -> str | None:
        """Say what is missing for ``amount``; ``None`` when the budget covers it."""
        committed = _total(self._spent, self.reserved, amount)
        for resource in self._limited():
            limit, wanted = getattr(self._budget, resource), getattr(committed, resource)
            if wanted > limit:
                asked = getattr(amount, resource)
                return f"{asked} {resource} asked for, {limit - wanted + asked} of {limit} left"
        return None

    def _check_open(self, reservation: Reservation) -> None:
        if self._open.get(reservation.ticket) != reservation:
            raise MisuseError(f"reservation {reservation.ticket} is not open: charge or refund it once")


def _total(*charges: Charge) -> Charge:
    return Charge(
        evaluations=sum(charge.evaluations for charge in charges),
        device_seconds=sum(charge.device_seconds for charge in charges),
    )
