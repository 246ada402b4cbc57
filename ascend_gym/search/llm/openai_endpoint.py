"""Language models behind any endpoint that speaks the OpenAI chat format, or the ``responses`` format."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ascend_gym.core.errors import MisuseError, ModelError, ModelRefusedError
from ascend_gym.core.protocols import Completion, Ending, Message
from ascend_gym.core.text import well_formed, without_thoughts
from ascend_gym.search.llm import openai_responses
from ascend_gym.search.llm.endpoint import Endpoint, RequestFailure, cached_tokens, used_tokens
from ascend_gym.search.llm.limits import CallLimits, Clock, prompt_bound_tokens

LEAST_ANSWER_TOKENS = 256

_MARGIN_TOKENS = 16
_REFUSING = frozenset({400, 413, 422})
_CODES = frozenset({"context_length_exceeded", "string_above_max_length"})
_WINDOW = re.compile(r"(?:maximum context length|context (?:window|size|length)) (?:is|of) (\d+)", re.I)
_PROMPT = re.compile(r"(\d+) (?:in the messages|input tokens|prompt tokens|tokens in the prompt)", re.I)
_LARGEST_ANSWER = re.compile(
    r"valid range of max_tokens is \[\d+, ?(\d+)\]|max_(?:completion_|output_)?tokens\b.{0,80}? > (\d+)",
    re.DOTALL,
)
_ABOUT_SIZE = re.compile(
    r"context (?:length|window|size)|too many tokens"
    r"|max_(?:completion_|output_)?tokens.{0,40}too (?:large|high)",
    re.IGNORECASE | re.DOTALL,
)

_OLD_LIMIT, _NEW_LIMIT = "max_tokens", "max_completion_tokens"
_OF_CHAT = {  # options, and how refusals name them
    "seed": r"\bseed\b",
    "temperature": r"\btemperature\b",
    "reasoning_effort": r"\breasoning(?:[_.]effort)?\b",
}
_OF_RESPONSES = {**_OF_CHAT, "store": r"\bstore\b"}
_RESPONSES_ONLY = re.compile(r"\b(?:only|not)\b.{0,80}\bv1/(?:responses|chat/completions)\b", re.DOTALL)
_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_NO_MONEY = re.compile(r"insufficient (?:quota|balance|credit)|exceeded your current quota", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"model\b.{0,120}?\b(?:does not exist|not found|unknown|is not (?:a valid|available|supported))"
    r"|(?:no such|unknown|invalid) model",
    re.IGNORECASE | re.DOTALL,
)
_TO_DO = {
    "model": "the endpoint has no such model: correct --model",
    "key": "the endpoint does not accept the key: correct OPENAI_API_KEY",
    "quota": "nothing is left to spend at the provider: pay, or take another",
}
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})
_LIMIT_REASONS = ("length", "max_tokens")
_REFUSAL_REASONS = ("content_filter", "refusal", "safety")


def fitting_answer_tokens(status: int, code: str, message: str, max_tokens: int) -> int | None:
    """Return the length of an answer that would fit; ``None`` if a refusal is about something else.

    Where the server does not say how much fits, half of what was asked for is tried. Less than
    ``LEAST_ANSWER_TOKENS`` means that the prompt leaves no room.

    Args:
        status: HTTP status of the refusal.
        code: what the server calls the error.
        message: what it says.
        max_tokens: length of the answer that was asked for.
    """
    if status not in _REFUSING:
        return None
    largest = _LARGEST_ANSWER.search(message)
    window, prompt = _WINDOW.search(message), _PROMPT.search(message)
    if window and prompt:
        fits = int(window[1]) - int(prompt[1]) - _MARGIN_TOKENS
    elif largest:
        fits = int(largest[1] or largest[2])
    elif code in _CODES or _ABOUT_SIZE.search(message):
        fits = max_tokens // 2
    else:
        return None
    return max(0, min(fits, max_tokens // 2 if fits >= max_tokens else fits))


def lasting_refusal(status: int, code: str, message: str) -> str | None:
    """Return why an endpoint will go on refusing (see ``ModelRefusedError``); ``None`` where it may not.

    Args:
        status: HTTP status of the refusal.
        code: what the server calls the error.
        message: what it says.
    """
    if status in (401, 403):
        return "key"
    if status == 402 or code in _QUOTA_CODES or (status == 429 and _NO_MONEY.search(message)):
        return "quota"
    if code == "model_not_found" or (status in (400, 404, 422) and _NO_MODEL.search(message)):
        return "model"
    return None


@dataclass(frozen=True)
class _Dialect:
    """Which of the request's fields a model understands.

    Attributes:
        responses: whether it is asked in the ``responses`` format.
        limit_field: what it calls the limit of the answer's length.
        left_out: options that it does not take.
    """

    responses: bool = False
    limit_field: str = _OLD_LIMIT
    left_out: frozenset[str] = frozenset()

    def fields(self, messages: Sequence[Message], max_tokens: int, **options: Any) -> dict[str, Any]:
        """Return the fields to send, without the model."""
        if self.responses:
            options["store"] = False
        sent = {name: value for name, value in options.items() if name not in self.left_out}
        if self.responses:
            return openai_responses.request_fields(messages, max_tokens, sent)
        chat = [{"role": message.role, "content": well_formed(message.content)} for message in messages]
        return {"messages": chat, self.limit_field: max_tokens, **sent}

    def learnt_from(self, failure: RequestFailure) -> _Dialect | None:
        """Return the dialect that a refusal asks for; ``None`` if it is about something else."""
        if not self.responses and failure.status in (400, 404) and _RESPONSES_ONLY.search(failure.message):
            return replace(self, responses=True)
        if failure.status not in (400, 422):
            return None
        if self.limit_field == _OLD_LIMIT and _NEW_LIMIT in failure.message:
            return replace(self, limit_field=_NEW_LIMIT)
        for option, named in (_OF_RESPONSES if self.responses else _OF_CHAT).items():
            meant = re.fullmatch(named, failure.param) or (
                not failure.param and re.search(named, failure.message)
            )
            if meant and option not in self.left_out:
                return replace(self, left_out=self.left_out | {option})
        return None


class OpenAiEndpoint:
    """An ``Llm`` over HTTP: OpenAI, DeepSeek, vLLM, Ollama and others. Safe for use from several threads.

    Busy or broken servers are asked again, within ``limits`` and the deadline, after the delay that the
    server names, else after a growing one. Models that refuse ``max_tokens``, ``seed``, ``temperature``
    or ``reasoning_effort`` are asked without from then on; answers are not repeatable without a seed. The
    ``responses`` format is used where the address ends in that, or the endpoint says that it has to be.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        api_key: str | None,
        temperature: float | None = None,
        reasoning_effort: str | None = None,
        limits: CallLimits | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Prepare to ask ``model``; nothing is sent yet.

        Args:
            model: name of the model at the endpoint.
            base_url: address, for example ``http://127.0.0.1:8000/v1``, with ``/responses`` behind it for
                that format; ``None`` means OpenAI's own.
            api_key: key; endpoints at a ``base_url`` may do without one.
            temperature: sampling temperature; ``None`` leaves it to the endpoint.
            reasoning_effort: how much a model may reason, such as ``low``; ``None`` leaves it open.
            limits: attempts, rates and sizes.
            clock: the time.

        Raises:
            MisuseError: there is neither a key nor an address of an endpoint that may not need one, or one
                of them cannot be right.
        """
        self.model = model
        options = {"temperature": temperature, "reasoning_effort": reasoning_effort}
        self._options = {name: value for name, value in options.items() if value is not None}
        address, responses = openai_responses.split_address(base_url)
        self._endpoint = Endpoint(address, api_key, limits or CallLimits(), clock or Clock(), model)
        self._dialect = _Dialect(responses=responses)
        self._fitting_tokens = sys.maxsize  # of an answer, as far as refusals have told

    def complete(
        self, messages: Sequence[Message], *, seed: int, max_tokens: int, deadline_s: float
    ) -> Completion:
        """Answer ``messages`` (see ``Llm``).

        Answers cut off at ``max_tokens``, refusals and filtered answers are answers: the text is what there
        is of it, a refusal's own words, or empty. Reasoning is left out of the text; its tokens count. Where
        the model's context window or its longest answer is too small for ``max_tokens``, this answer and
        later ones may be as long as fits.

        Raises:
            ModelError: the prompt leaves no room for an answer; the endpoint refused, answered with something
                else than a chat completion, or did not answer within the attempts and the time allowed.
        """
        give_up_at = self._endpoint.deadline(deadline_s)
        dialect, answer_tokens = self._dialect, min(max_tokens, self._fitting_tokens)
        while True:
            fields = dialect.fields(messages, answer_tokens, seed=seed, **self._options)
            outcome = self._endpoint.ask(
                self._create(responses=dialect.responses),
                {"model": self.model, **fields},
                self._response if dialect.responses else self._completion,
                bound_tokens=prompt_bound_tokens(messages) + answer_tokens,
                give_up_at=give_up_at,
            )
            if isinstance(outcome, Completion):
                return outcome
            if outcome.code in _FILTER_CODES:
                return Completion(outcome.message, 0, 0, self.model, ending=Ending.REFUSED)
            fitting = fitting_answer_tokens(outcome.status, outcome.code, outcome.message, answer_tokens)
            if fitting is not None:
                self._fitting_tokens = answer_tokens = self._with_room(fitting, outcome)
                continue
            learnt = dialect.learnt_from(outcome)
            if learnt is None:
                kind = lasting_refusal(outcome.status, outcome.code, outcome.message)
                if kind is not None:
                    raise ModelRefusedError(kind, f"model {self.model!r}: {_TO_DO[kind]}: {outcome.message}")
                raise ModelError(f"model {self.model!r}: {outcome.message}")
            self._dialect = dialect = learnt

    def _create(self, *, responses: bool) -> Callable[..., Any]:
        """Return the method of the package that asks.

        Raises:
            MisuseError: the package is too old to know the format.
        """
        sdk = self._endpoint.sdk
        if not responses:
            create: Callable[..., Any] = sdk.chat.completions.with_raw_response.create
        elif hasattr(sdk, "responses"):
            create = sdk.responses.with_raw_response.create
        else:
            raise MisuseError("the 'responses' format needs a newer client: pip install 'openai>=1.66'")
        return create

    def _response(self, answer: Any) -> Completion:
        """Read an answer in the ``responses`` format, which may be any JSON.

        Raises:
            ValueError: it is none.
        """
        text, ending = openai_responses.answer_text(answer)
        return self._completed(text, answer, ending)

    def _completed(self, text: str, answer: dict[str, Any], ending: Ending) -> Completion:
        prompt_tokens, completion_tokens = used_tokens(answer)
        model = answer.get("model")
        return Completion(
            text=self._endpoint.redacted(text),
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            model=self._endpoint.redacted(model) if isinstance(model, str) and model else self.model,
            ending=ending,
            cached_tokens=cached_tokens(answer),
        )

    def _with_room(self, fitting_tokens: int, refusal: RequestFailure) -> int:
        """Return what fits.

        Raises:
            ModelError: that is too little for an answer.
        """
        if fitting_tokens < LEAST_ANSWER_TOKENS:
            advice = "the prompt leaves no room for an answer: take a model with a larger context window"
            raise ModelError(f"model {self.model!r}: {advice}; it says: {refusal.message}")
        return fitting_tokens

    def _completion(self, answer: Any) -> Completion:
        """Read an answer, which may be any JSON.

        Raises:
            ValueError: it is no chat completion.
        """
        choices = answer.get("choices") if isinstance(answer, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            raise ValueError("expected a chat completion with a choice")
        return self._completed(_said(message), answer, _ending(choice))


def _said(message: dict[str, Any]) -> str:
    """Return the text of a message without its reasoning, or the words of a refusal."""
    content, refusal = message.get("content"), message.get("refusal")
    if isinstance(content, list):
        content = "".join(_part(part) for part in content)
    if not isinstance(content, str | None):
        raise ValueError(f"expected text as content, got {type(content).__name__}")
    return without_thoughts(content or "") or (refusal if isinstance(refusal, str) else "")


def _ending(choice: dict[str, Any]) -> Ending:
    """Return why a model stopped, by what the endpoints say."""
    reason, refusal = choice.get("finish_reason"), choice["message"].get("refusal")
    if reason in _LIMIT_REASONS:
        return Ending.TOKEN_LIMIT
    if reason in _REFUSAL_REASONS or (isinstance(refusal, str) and refusal):
        return Ending.REFUSED
    return Ending.COMPLETE


def _part(part: Any) -> str:
    """Return the text of a part of a message; reasoning, images and calls have none."""
    if not isinstance(part, dict):
        raise ValueError(f"expected objects as parts of the content, got {type(part).__name__}")
    text = part.get("text", "") if part.get("type") == "text" else ""
    return text if isinstance(text, str) else ""
