"""What models cost: tokens and money, through the ledger of the search.

Before a call what it can cost is reserved; after it, what it cost is charged and the rest given
back. A call that fails is refunded: what the endpoint bills for it, if anything, nobody is told.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ascend_gym.core.errors import BudgetExceededError, MisuseError, ModelError
from ascend_gym.core.protocols import Completion, Llm, Message
from ascend_gym.search.ledger import BudgetLedger, Cost, Reservation
from ascend_gym.search.llm.limits import Clock, estimated_text_tokens, estimated_tokens
from ascend_gym.search.llm.shared_limits import SharedBudget

_MILLION = 1_000_000
_WAIT_S = 0.2  # for what other runs have set aside


@dataclass(frozen=True)
class Price:
    """What a model costs, in US dollars per million tokens; the user knows, and it changes.

    Attributes:
        prompt_usd: for a million tokens read.
        completion_usd: for a million tokens written.
        cached_usd: for a million tokens read from the provider's cache; ``None`` where they cost as others.
    """

    prompt_usd: float = 0.0
    completion_usd: float = 0.0
    cached_usd: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is no price."""
        prices = (self.prompt_usd, self.completion_usd, self.cached_usd or 0.0)
        if not all(math.isfinite(usd) and usd >= 0 for usd in prices):
            raise MisuseError(f"a price is a number of US dollars, 0 or more, got {self}")

    @classmethod
    def parsed(cls, text: str) -> Price:
        """Read ``IN,OUT`` or ``IN,OUT,CACHED``, for example ``0.28,0.42,0.028``.

        Raises:
            MisuseError: the text is something else.
        """
        try:
            numbers = [float(part) for part in text.split(",")]
            prompt_usd, completion_usd = numbers[:2]
            cached_usd: float | None = None
            if len(numbers) > 2:
                (cached_usd,) = numbers[2:]
        except ValueError as error:
            expected = "a price as IN,OUT or IN,OUT,CACHED in US dollars per million tokens"
            raise MisuseError(f"expected {expected}, such as 0.28,0.42, got {text!r}") from error
        return cls(prompt_usd, completion_usd, cached_usd)

    def cost(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> Cost:
        """Return what so many tokens cost, of which ``cached_tokens`` were in the provider's cache."""
        cached_usd = self.prompt_usd if self.cached_usd is None else self.cached_usd
        read = (prompt_tokens - cached_tokens) * self.prompt_usd + cached_tokens * cached_usd
        usd = (read + completion_tokens * self.completion_usd) / _MILLION
        return Cost(tokens=prompt_tokens + completion_tokens, usd=usd)


class MeteredLlm:
    """An ``Llm`` whose calls are charged to a ledger. Safe for use from several threads.

    - A call is begun only if the budget covers what it may take: a token for each 2.5 bytes of the prompt,
      and ``max_tokens``. While calls of this meter are under way that may give some of it back, it waits.
      Which of several calls at a time is the first that is not covered depends on their order.
    - Counts that the endpoint leaves out are taken for a token per 2.5 bytes.
    - Answers from a recording cost nothing.
    - An endpoint that reports more than was reserved is believed: the excess is charged too. If the budget
      does not cover it, the reservation is spent, and ``BudgetExceededError`` tells the true figure: the
      search ends.
    """

    def __init__(self, inner: Llm, ledger: BudgetLedger, price: Price | None = None) -> None:
        """Charge the calls of ``inner`` to ``ledger``.

        Raises:
            MisuseError: the budget limits money, but there is no price.
        """
        if price is None and ledger.budget.usd is not None:
            raise MisuseError("a budget in US dollars needs the price of the model: give --price IN,OUT")
        self._inner, self._ledger, self._price = inner, ledger, price or Price()
        self._under_way = 0
        self._settled = threading.Condition()

    def complete(
        self, messages: Sequence[Message], *, seed: int, max_tokens: int, deadline_s: float
    ) -> Completion:
        """Answer ``messages`` (see ``Llm``).

        Raises:
            ModelError: the model could not answer; nothing is charged.
            BudgetExceededError: the budget does not cover the call, or did not cover what it took.
        """
        prompt_tokens = estimated_tokens(messages)
        with self._reserved(self._price.cost(prompt_tokens, max_tokens)) as reservation:
            completion = None
            try:
                completion = self._inner.complete(
                    messages, seed=seed, max_tokens=max_tokens, deadline_s=deadline_s
                )
            finally:
                if completion is None:
                    self._ledger.refund(reservation)
            self._ledger.charge(reservation, self._cost(completion, prompt_tokens))
            return completion

    @contextmanager
    def _reserved(self, most: Cost) -> Iterator[Reservation]:
        with self._settled:
            while self._under_way and not self._ledger.can_reserve(most):
                self._settled.wait()
            try:
                reservation = self._ledger.reserve(most)
            except BudgetExceededError as error:
                told = f"a question with its longest answer may take some {most.tokens} tokens"
                raise BudgetExceededError(
                    f"{told}: {error}; raise the budget, or lower --max-tokens"
                ) from None
            self._under_way += 1
        try:
            yield reservation
        finally:
            with self._settled:
                self._under_way -= 1
                self._settled.notify_all()

    def _cost(self, completion: Completion, prompt_tokens: int) -> Cost:
        return Cost() if completion.recorded else cost_of(completion, prompt_tokens, self._price)


def cost_of(completion: Completion, prompt_tokens: int, price: Price) -> Cost:
    """Return what an answer cost; ``prompt_tokens`` are taken where the endpoint told none."""
    written = completion.completion_tokens or estimated_text_tokens(completion.text)
    read = completion.prompt_tokens or prompt_tokens
    return price.cost(read, written, min(read, completion.cached_tokens))


class SweepMeteredLlm:
    """An ``Llm`` at an endpoint whose calls are charged to what all runs of a sweep may spend together.

    It stands behind the recordings, since an answer that is repeated was paid for before.
    """

    def __init__(
        self, inner: Llm, shared: SharedBudget, price: Price | None, clock: Clock | None = None
    ) -> None:
        """Charge the calls of ``inner`` to ``shared``."""
        self._inner, self._shared, self._price = inner, shared, price or Price()
        self._clock = clock or Clock()

    def complete(
        self, messages: Sequence[Message], *, seed: int, max_tokens: int, deadline_s: float
    ) -> Completion:
        """Answer ``messages`` (see ``Llm``).

        Raises:
            ModelRefusedError: what is left of the sweep's budget does not cover the call.
            ModelError: the model could not answer; nothing is charged.
        """
        prompt_tokens = estimated_tokens(messages)
        most = self._price.cost(prompt_tokens, max_tokens)
        give_up_at = self._clock.now_s() + deadline_s
        ticket = self._shared.reserve(most)
        while ticket is None and self._clock.now_s() < give_up_at:
            self._clock.wait(_WAIT_S)
            ticket = self._shared.reserve(most)
        if ticket is None:
            raise ModelError(f"other runs of the sweep held what is left to spend for {deadline_s:.0f} s")
        actual = Cost()
        try:
            completion = self._inner.complete(
                messages, seed=seed, max_tokens=max_tokens, deadline_s=deadline_s
            )
            actual = cost_of(completion, prompt_tokens, self._price)
        finally:
            self._shared.settle(ticket, actual)
        return completion
