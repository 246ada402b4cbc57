"""An endpoint in the OpenAI format: asked again when busy or broken, within limits; JSON that may be any."""

from __future__ import annotations

import email.utils
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import openai

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError
from ascend_gym.search.llm.limits import CallLimits, Clock, MinuteLimit
from ascend_gym.search.llm.openai_client import HttpAnswer, NoAnswer, OpenAiClient
from ascend_gym.search.llm.shared_limits import SharedMinuteLimit

FIRST_DELAY_S = 0.5
MAX_DELAY_S = 20.0

_T = TypeVar("_T")

_RETRIED_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_HOPELESS_CODES = frozenset({"insufficient_quota"})
_PLACEHOLDER_LENGTH = 8  # keys such as "EMPTY", "none", "ollama" are no secrets, and may stand in an answer
_SHOWN = 500
_MAX_TOKENS = 10**9  # more is no count


@dataclass(frozen=True)
class RequestFailure:
    """Why a request has no answer that can be used.

    Attributes:
        message: what went wrong; holds no secret.
        again: whether the same request may do better later.
        delay_s: seconds to wait before that, when the server named them.
        status: HTTP status; 0 without an answer.
        code: what the server calls the error.
        param: the field of the request that the server does not accept.
    """

    message: str
    again: bool
    delay_s: float | None = None
    status: int = 0
    code: str = ""
    param: str = ""


class Endpoint:
    """Asks one endpoint. Safe for use from several threads."""

    def __init__(
        self, base_url: str | None, api_key: str | None, limits: CallLimits, clock: Clock, name: str = ""
    ) -> None:
        """Prepare to ask; nothing is sent yet. Rates hold for each ``name``, as a rule a model's.

        Raises:
            MisuseError: the key has characters that no key has, or neither key nor address is given.
        """
        key = (api_key or "").strip()
        if not key and not base_url:
            raise MisuseError(
                "set OPENAI_API_KEY, or name an endpoint that needs no key: --base-url or OPENAI_BASE_URL"
            )
        if not (key.isascii() and key.isprintable()):
            raise MisuseError("OPENAI_API_KEY holds characters that no key has")
        self._secret = key if len(key) >= _PLACEHOLDER_LENGTH else ""
        self._limits, self._clock = limits, clock
        self._client = OpenAiClient(base_url, key or None, limits.max_answer_bytes)
        rates = limits.requests_per_minute, limits.tokens_per_minute
        self._minute: MinuteLimit | SharedMinuteLimit = MinuteLimit(*rates)
        if limits.shared_rates is not None and any(rates):
            self._minute = SharedMinuteLimit(
                limits.shared_rates, digest_of("rates", base_url, name)[:16], *rates
            )
        self._slots = threading.BoundedSemaphore(limits.max_concurrent)

    @property
    def sdk(self) -> openai.OpenAI:
        """The client whose methods ``ask`` takes."""
        return self._client.sdk

    def deadline(self, deadline_s: float) -> float:
        """Return the clock's time in ``deadline_s`` seconds."""
        return self._clock.now_s() + deadline_s

    def redacted(self, text: str) -> str:
        """Return ``text`` without the key."""
        return text.replace(self._secret, "***") if self._secret else text

    def ask(
        self,
        create: Callable[..., Any],
        body: Mapping[str, Any],
        read: Callable[[Any], _T],
        *,
        bound_tokens: int,
        give_up_at: float,
    ) -> _T | RequestFailure:
        """Send ``body`` and return what ``read`` makes of the JSON answer.

        Args:
            create: method of ``sdk`` that sends, in its ``with_raw_response`` form.
            body: arguments of that method.
            read: raises ``ValueError`` for an answer that it does not understand.
            bound_tokens: tokens that the request can take at most.
            give_up_at: time of ``deadline`` at which to give up; waiting for limits counts.
        """
        for attempt in range(1, self._limits.max_attempts + 1):
            outcome = self._attempt(create, body, read, bound_tokens, give_up_at)
            if not isinstance(outcome, RequestFailure) or not outcome.again:
                break
            delay_s = outcome.delay_s
            if delay_s is None:
                delay_s = min(FIRST_DELAY_S * 2 ** (attempt - 1), MAX_DELAY_S)
            if attempt == self._limits.max_attempts or self._clock.now_s() + delay_s >= give_up_at:
                break
            self._clock.wait(delay_s)
        return outcome

    def _attempt(
        self,
        create: Callable[..., Any],
        body: Mapping[str, Any],
        read: Callable[[Any], _T],
        bound_tokens: int,
        give_up_at: float,
    ) -> _T | RequestFailure:
        """Wait for a slot and for the rate limits, send, and read the answer."""
        if not self._slots.acquire(timeout=max(0.0, give_up_at - self._clock.now_s())):
            return RequestFailure(
                f"all {self._limits.max_concurrent} requests allowed at a time are under way", False
            )
        try:
            now_s = self._clock.now_s()
            booking = self._minute.book(bound_tokens, now_s=now_s, latest_s=give_up_at)
            if booking is None:
                told = (
                    "the rate limits allow no request before the deadline: raise them, or ask fewer at a time"
                )
                return RequestFailure(told, again=False)
            if booking.start_s > now_s:
                self._clock.wait(booking.start_s - now_s)
            answer = self._client.ask(create, body, max(0.0, give_up_at - self._clock.now_s()))
        finally:
            self._slots.release()
        outcome, tokens = self._read(answer, read)
        self._minute.settle(booking, bound_tokens if tokens is None else tokens)
        return outcome

    def _read(
        self, answer: HttpAnswer | NoAnswer, read: Callable[[Any], _T]
    ) -> tuple[_T | RequestFailure, int | None]:
        """Return what an answer says, and the tokens that it took; ``None`` if it does not tell."""
        if isinstance(answer, NoAnswer):
            return RequestFailure(self.redacted(answer.message), again=True), None
        if not 200 <= answer.status < 300:
            return self._refused(answer), 0
        try:
            parsed = json.loads(answer.body)
            tokens = sum(used_tokens(parsed))
            return read(parsed), tokens or None
        except (ValueError, RecursionError) as error:
            began = self._shown(answer.body.decode("utf-8", "replace"))
            return RequestFailure(
                f"not understood: {self._shown(str(error))}; it began: {began!r}", True
            ), None

    def _refused(self, answer: HttpAnswer) -> RequestFailure:
        said = _error_in(answer.body)
        message = said.get("message")
        message = message if isinstance(message, str) and message else answer.body.decode("utf-8", "replace")
        code, param = (str(said.get(field) or "") for field in ("code", "param"))
        return RequestFailure(
            f"HTTP {answer.status}: {self._shown(message)}",
            again=answer.status in _RETRIED_STATUSES and code not in _HOPELESS_CODES,
            delay_s=_asked_delay_s(answer.headers),
            status=answer.status,
            code=code,
            param=param,
        )

    def _shown(self, text: str) -> str:
        return self.redacted(text)[:_SHOWN]


def used_tokens(answer: Any) -> tuple[int, int]:
    """Return prompt and completion tokens by an answer's ``usage``; what is missing or broken counts 0.

    Where the total is larger than both together, the rest is reasoning, which some endpoints leave out of
    the completion tokens: it is added to them. The ``responses`` format calls them input and output.
    """
    usage = answer.get("usage") if isinstance(answer, dict) else None
    usage = usage if isinstance(usage, dict) else {}
    prompt = _count(usage.get("prompt_tokens", usage.get("input_tokens")))
    completion = _count(usage.get("completion_tokens", usage.get("output_tokens")))
    total = _count(usage.get("total_tokens"))
    return prompt, max(completion, total - prompt)


def cached_tokens(answer: Any) -> int:
    """Return how many prompt tokens a provider had in its cache, by what the formats call it; 0 unknown."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    details = details if isinstance(details, dict) else {}
    cached = _count(details.get("cached_tokens", usage.get("prompt_cache_hit_tokens")))
    return min(cached, used_tokens(answer)[0])


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= _MAX_TOKENS else 0


def _error_in(body: bytes) -> dict[str, Any]:
    """Return the error object in a body: OpenAI's, or the bare text and objects of others."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else {}
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else {}


def _asked_delay_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds named by the answer's headers, or ``None``: seconds, milliseconds, or a date."""
    text = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", headers.get("retry-after-ms", "")):
        return float(headers["retry-after-ms"]) / 1000
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
