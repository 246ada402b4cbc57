"""How often, how many at a time and how much: the limits that calls to a model keep to."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Message

WINDOW_S = 60.0
MAX_ANSWER_BYTES = 4 * 2**20

_FRAMING_TOKENS = 16
_BYTES_PER_TOKEN = 2.5


@dataclass(frozen=True)
class Clock:
    """The time, and a way to let it pass; tests bring their own."""

    now_s: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class CallLimits:
    """What calls to one endpoint may take; ``None`` leaves a rate unlimited.

    Attributes:
        max_attempts: requests made for one answer at most.
        max_concurrent: requests under way at a time.
        requests_per_minute: requests begun within any 60 seconds.
        tokens_per_minute: tokens of the requests begun within any 60 seconds: what each can take at most
            until it is answered, then what it took. A request larger than the limit takes a minute alone.
        max_answer_bytes: length of an answer's body.
        shared_rates: folder in which all processes of this host that name it keep to the rates together;
            ``None`` for rates of this process alone.
    """

    max_attempts: int = 8
    max_concurrent: int = 8
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_answer_bytes: int = MAX_ANSWER_BYTES
    shared_rates: Path | None = None

    def __post_init__(self) -> None:
        """Refuse limits that let nothing through."""
        for name, value in vars(self).items():
            if isinstance(value, int) and value < 1:
                raise MisuseError(f"{name} must be at least 1, got {value}")


@dataclass
class Booking:
    """A request's place in time: when it may begin, the tokens that it takes, its number if it has one."""

    start_s: float
    tokens: int
    number: int = 0


class MinuteLimit:
    """Gives each request the earliest start that keeps any 60 seconds within the limits.

    First come, first served. It decides and does not wait. Safe for use from several threads.
    """

    def __init__(self, requests: int | None, tokens: int | None) -> None:
        self._requests, self._tokens = requests, tokens
        self._bookings: deque[Booking] = deque()
        self._lock = threading.Lock()

    def book(self, tokens: int, *, now_s: float, latest_s: float) -> Booking | None:
        """Book a start for a request of up to ``tokens``; ``None``, and no booking, if after ``latest_s``."""
        with self._lock:
            while self._bookings and self._bookings[0].start_s + WINDOW_S <= now_s:
                self._bookings.popleft()
            start_s = earliest_start_s(self._bookings, tokens, now_s, self._requests, self._tokens)
            if start_s > latest_s:
                return None
            self._bookings.append(Booking(start_s, tokens))
            return self._bookings[-1]

    def settle(self, booking: Booking, tokens: int) -> None:
        """Put what a request took in the place of what it could have taken."""
        with self._lock:
            booking.tokens = tokens


def earliest_start_s(
    bookings: Sequence[Booking], tokens: int, now_s: float, most_requests: int | None, most_tokens: int | None
) -> float:
    """Return when a further request may begin, after the ``bookings`` of the last 60 seconds, in order."""
    start_s = max(now_s, bookings[-1].start_s) if bookings else now_s
    if most_requests is not None and len(bookings) >= most_requests:
        start_s = max(start_s, bookings[-most_requests].start_s + WINDOW_S)
    if most_tokens is None:
        return start_s
    room = most_tokens - min(tokens, most_tokens)
    for booking in reversed(bookings):
        room -= booking.tokens
        if room < 0:
            return max(start_s, booking.start_s + WINDOW_S)
    return start_s


def prompt_bound_tokens(messages: Sequence[Message]) -> int:
    """Return more tokens than ``messages`` can take: a token is a byte at least, and framing is little."""
    return texts_bound_tokens([message.role + message.content for message in messages])


def texts_bound_tokens(texts: Sequence[str]) -> int:
    """Return more tokens than ``texts`` can take, framing included."""
    sizes = (len(text.encode("utf-8", "replace")) for text in texts)
    return _FRAMING_TOKENS * (1 + len(texts)) + sum(sizes)


def estimated_tokens(messages: Sequence[Message]) -> int:
    """Return what ``messages`` will take, rather more than less: code has some three bytes a token."""
    return estimated_text_tokens("".join(message.role + message.content for message in messages)) + (
        _FRAMING_TOKENS * (1 + len(messages))
    )


def estimated_text_tokens(text: str) -> int:
    """Return what a text will take, rather more than less."""
    return math.ceil(len(text.encode("utf-8", "replace")) / _BYTES_PER_TOKEN)
