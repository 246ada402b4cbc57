"""Language models behind any endpoint that speaks the OpenAI chat format."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import openai
from openai.types.chat import ChatCompletion

from ascend_gym.core.errors import MisuseError, ModelError
from ascend_gym.core.protocols import Completion, Message

FIRST_DELAY_S = 0.5
MAX_DELAY_S = 20.0

_RETRIED_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_OLD_LIMIT, _NEW_LIMIT = "max_tokens", "max_completion_tokens"


class OpenAiEndpoint:
    """An ``Llm`` over HTTP: OpenAI, DeepSeek, vLLM, Ollama and others.

    Busy or broken servers are asked again, up to ``max_attempts`` times in all and within the deadline,
    after the delay that the server names, else after a growing one.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        api_key: str | None,
        max_attempts: int = 4,
        temperature: float | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """Prepare to ask ``model``; nothing is sent yet.

        Args:
            model: name of the model at the endpoint.
            base_url: address, for example ``http://127.0.0.1:8000/v1``; ``None`` means OpenAI's own.
            api_key: key; endpoints at a ``base_url`` may do without one.
            max_attempts: requests made for one completion at most.
            temperature: sampling temperature; ``None`` leaves it to the endpoint.
            wait: waits for a number of seconds.

        Raises:
            MisuseError: there is neither a key nor an address of an endpoint that may not need one.
        """
        if not api_key and not base_url:
            raise MisuseError("set OPENAI_API_KEY, or OPENAI_BASE_URL for an endpoint that needs no key")
        self.model = model
        self._client = openai.OpenAI(base_url=base_url, api_key=api_key or "none", max_retries=0)
        self._max_attempts = max_attempts
        self._temperature = temperature
        self._wait = wait
        self._limit_field = _OLD_LIMIT

    def complete(
        self, messages: Sequence[Message], *, seed: int, max_tokens: int, deadline_s: float
    ) -> Completion:
        """Answer ``messages`` (see ``Llm``). An answer cut off at ``max_tokens`` is returned as it is.

        Raises:
            ModelError: the endpoint refused, answered with something else than a chat completion, or did
                not answer within the attempts and the time allowed.
        """
        give_up_at = time.monotonic() + deadline_s
        for attempt in range(1, self._max_attempts + 1):
            try:
                response = self._request(messages, seed, max_tokens, give_up_at - time.monotonic())
                return self._completion(response)
            except openai.BadRequestError as error:
                self._adapt_limit_field(error)
            except openai.APIStatusError as error:
                if error.status_code not in _RETRIED_STATUSES:
                    raise self._failed(error) from error
                self._pause(error, attempt, give_up_at)
            except (openai.APIConnectionError, ValueError) as error:  # ValueError: the body is no JSON
                self._pause(error, attempt, give_up_at)
        raise ModelError(f"model {self.model!r}: no answer in {self._max_attempts} attempts")

    def _request(self, messages: Sequence[Message], seed: int, max_tokens: int, timeout_s: float) -> Any:
        options: dict[str, Any] = {self._limit_field: max_tokens}
        if self._temperature is not None:
            options["temperature"] = self._temperature
        return self._client.chat.completions.create(
            model=self.model,
            messages=[{"role": message.role, "content": message.content} for message in messages],  # type: ignore[misc]
            seed=seed,
            timeout=timeout_s,
            **options,
        )

    def _completion(self, response: Any) -> Completion:
        """Read a response, which may be any JSON; fields left out are empty, broken token counts 0."""
        choices = response.choices if isinstance(response, ChatCompletion) else None
        if not isinstance(choices, list) or not choices:
            raise self._not_understood(response)
        content = getattr(getattr(choices[0], "message", None), "content", response)
        if not isinstance(content, str | None):
            raise self._not_understood(response)
        model = response.model
        return Completion(
            text=content or "",
            prompt_tokens=_tokens(response.usage, "prompt_tokens"),
            completion_tokens=_tokens(response.usage, "completion_tokens"),
            model=model if isinstance(model, str) and model else self.model,
        )

    def _not_understood(self, response: Any) -> ModelError:
        return ModelError(f"model {self.model!r}: expected a chat completion, got {str(response)[:200]!r}")

    def _adapt_limit_field(self, error: openai.BadRequestError) -> None:
        """Newer models name the token limit otherwise: take their word for it, once."""
        if self._limit_field == _NEW_LIMIT or _NEW_LIMIT not in str(error):
            raise self._failed(error) from error
        self._limit_field = _NEW_LIMIT

    def _pause(self, error: Exception, attempt: int, give_up_at: float) -> None:
        """Wait before the next attempt, unless it was the last or time is up."""
        delay_s = _asked_delay_s(error)
        if delay_s is None:
            delay_s = min(FIRST_DELAY_S * 2 ** (attempt - 1), MAX_DELAY_S)
        if attempt == self._max_attempts or time.monotonic() + delay_s >= give_up_at:
            raise self._failed(error) from error
        self._wait(delay_s)

    def _failed(self, error: Exception) -> ModelError:
        said = str(error).replace(self._client.api_key, "***")[:500]
        return ModelError(f"model {self.model!r}: {type(error).__name__}: {said}")


def _tokens(usage: object, field: str) -> int:
    count = getattr(usage, field, 0)
    return count if type(count) is int and count >= 0 else 0


def _asked_delay_s(error: Exception) -> float | None:
    """Return the seconds named by a Retry-After header, or ``None``."""
    if not isinstance(error, openai.APIStatusError):
        return None
    try:
        return max(0.0, float(error.response.headers.get("retry-after", "")))
    except ValueError:
        return None
