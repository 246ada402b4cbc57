"""The budget of a search: reserve before acting, then charge what it cost or refund it."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, fields
from itertools import count

from ascend_gym.core.errors import BudgetExceededError, MisuseError


@dataclass(frozen=True)
class Cost:
    """An amount of what a search spends.

    Attributes:
        evaluations: evaluations.
        device_seconds: seconds of device time.
        tokens: tokens read and written by models.
        usd: money paid for them, in US dollars.
        builds: builds without an evaluation.
    """

    evaluations: int = 0
    device_seconds: float = 0.0
    tokens: int = 0
    usd: float = 0.0
    builds: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            evaluations=self.evaluations + other.evaluations,
            device_seconds=self.device_seconds + other.device_seconds,
            tokens=self.tokens + other.tokens,
            usd=self.usd + other.usd,
            builds=self.builds + other.builds,
        )


_RESOURCES = tuple(field.name for field in fields(Cost))


@dataclass(frozen=True)
class Budget:
    """What a search may spend; ``None`` leaves a resource unlimited.

    Attributes:
        evaluations: evaluations that may be charged.
        device_seconds: seconds of device time that may be charged.
        tokens: tokens that models may read and write.
        usd: US dollars that models may cost.
        builds: builds without an evaluation.
    """

    evaluations: int
    device_seconds: float | None = None
    tokens: int | None = None
    usd: float | None = None
    builds: int | None = None

    def __post_init__(self) -> None:
        """Refuse budgets that can never be spent."""
        limits = [getattr(self, resource) for resource in _RESOURCES]
        if not all(limit is None or 0 <= limit < math.inf for limit in limits):
            raise MisuseError(f"a budget is a number that is not negative, or None for no limit, got {self}")


@dataclass(frozen=True)
class Reservation:
    """Part of the budget that is set aside until it is charged or refunded."""

    ticket: int
    amount: Cost


class BudgetLedger:
    """Accounts for every unit of a budget: spent + reserved never exceeds it. For use from any thread."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._spent = Cost()
        self._open: dict[int, Reservation] = {}
        self._tickets = count(1)
        self._lock = threading.RLock()

    @property
    def budget(self) -> Budget:
        """The whole budget."""
        return self._budget

    @property
    def spent(self) -> Cost:
        """What has been charged."""
        return self._spent

    @property
    def reserved(self) -> Cost:
        """What is set aside by open reservations."""
        with self._lock:
            return sum((reservation.amount for reservation in self._open.values()), Cost())

    def can_reserve(self, amount: Cost) -> bool:
        """Say whether ``reserve(amount)`` would succeed."""
        return self._shortage(amount) is None

    def reserve(self, amount: Cost) -> Reservation:
        """Set ``amount`` aside: the most that the coming work can cost.

        Raises:
            BudgetExceededError: the budget left does not cover it; nothing is set aside.
        """
        with self._lock:
            shortage = self._shortage(amount)
            if shortage is not None:
                raise BudgetExceededError(shortage)
            reservation = Reservation(next(self._tickets), amount)
            self._open[reservation.ticket] = reservation
            return reservation

    def charge(self, reservation: Reservation, actual: Cost) -> None:
        """Spend ``actual`` and close the reservation; what it lacks comes from the budget left.

        Raises:
            BudgetExceededError: the budget left does not cover that either; what was reserved is spent.
            MisuseError: the reservation was charged or refunded before.
        """
        with self._lock:
            self._check_open(reservation)
            del self._open[reservation.ticket]
            within = all(
                getattr(actual, name) <= getattr(reservation.amount, name) for name in self._limited()
            )
            shortage = None if within else self._shortage(actual)
            self._spent += actual if shortage is None else reservation.amount
        if shortage is not None:
            raise BudgetExceededError(f"more was spent than was reserved: {shortage}")

    def refund(self, reservation: Reservation) -> None:
        """Give a whole reservation back.

        Raises:
            MisuseError: the reservation was charged or refunded before.
        """
        with self._lock:
            self._check_open(reservation)
            del self._open[reservation.ticket]

    def _limited(self) -> list[str]:
        return [resource for resource in _RESOURCES if getattr(self._budget, resource) is not None]

    def _shortage(self, amount: Cost) -> str | None:
        """Say what is missing for ``amount``; ``None`` when the budget covers it."""
        with self._lock:
            committed = self._spent + self.reserved + amount
        for resource in self._limited():
            limit, wanted = getattr(self._budget, resource), getattr(committed, resource)
            if wanted > limit:
                asked = getattr(amount, resource)
                left = limit - wanted + asked
                return f"{_told(asked)} {resource} asked for, {_told(left)} of {_told(limit)} left"
        return None

    def _check_open(self, reservation: Reservation) -> None:
        if self._open.get(reservation.ticket) != reservation:
            raise MisuseError(f"reservation {reservation.ticket} is not open: charge or refund it once")


def _told(amount: float) -> str:
    """Return an amount in text: a count in full, anything else to six digits."""
    return str(amount) if isinstance(amount, int) else f"{amount:.6g}"
