"""The OpenAI chat format as a server sees it: requests checked, answers and errors rendered. No sockets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import AscendGymError
from ascend_gym.core.protocols import Completion, Message
from ascend_gym.search.seeds import derived_seed

DEFAULT_MAX_TOKENS = 16384

_TYPES = {501: "server_error", 503: "server_error"}

_Request = TypeVar("_Request", bound=BaseModel)


class ApiError(AscendGymError):
    """A request that is answered with an error."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        """Answer with HTTP ``status``; ``param`` is the field of the request that is wrong."""
        super().__init__(message)
        self.status, self.param, self.code = status, param, code

    @property
    def body(self) -> dict[str, Any]:
        """The JSON document that tells the client."""
        kind = _TYPES.get(self.status, "invalid_request_error")
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class _TextPart(_Record):
    type: Literal["text"]
    text: str


class _ChatMessage(_Record):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | tuple[_TextPart, ...]

    def as_message(self) -> Message:
        """Return the message as models of this project take it."""
        content = self.content
        text = content if isinstance(content, str) else "".join(part.text for part in content)
        return Message("system" if self.role == "developer" else self.role, text)


class _StreamOptions(_Record):
    include_usage: bool = False


class ChatRequest(_Record):
    """A chat request. Fields that change how a model samples are accepted and have no effect."""

    model: str
    messages: Annotated[tuple[_ChatMessage, ...], Field(min_length=1)]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    seed: int | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    n: Literal[1] | None = None

    @property
    def chat(self) -> list[Message]:
        """The conversation."""
        return [message.as_message() for message in self.messages]

    @property
    def limit_tokens(self) -> int:
        """The upper limit of the answer's length."""
        return self.max_completion_tokens or self.max_tokens or DEFAULT_MAX_TOKENS

    @property
    def digest(self) -> str:
        """Identity of the question, the seed included if there is one."""
        chat = [(message.role, message.content) for message in self.chat]
        return digest_of("chat", self.model, chat, self.limit_tokens, self.seed)

    @property
    def used_seed(self) -> int:
        """The seed given, else one that follows from the question."""
        return derived_seed(0, self.digest) if self.seed is None else self.seed


def chat_request(body: bytes) -> ChatRequest:
    """Read a chat request.

    Raises:
        ApiError: it is no such request; says what is wrong with it.
    """
    return _read(ChatRequest, body)


def model_list(names: Iterable[str]) -> dict[str, Any]:
    """Return the answer to ``GET /v1/models``."""
    return {"object": "list", "data": [model_card(name) for name in names]}


def model_card(name: str) -> dict[str, Any]:
    """Return the answer to ``GET /v1/models/NAME``."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "ascend-gym"}


@dataclass(frozen=True)
class ChatAnswer:
    """A completion in the form that clients read."""

    request: ChatRequest
    completion: Completion
    created_s: int

    def whole(self) -> dict[str, Any]:
        """Return the answer as one document."""
        message = {"role": "assistant", "content": self.completion.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish_reason}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._usage}

    def events(self) -> Iterator[bytes]:
        """Yield the answer as server-sent events, a line of its text at a time."""
        yield self._event({"role": "assistant", "content": ""})
        for line in self.completion.text.splitlines(keepends=True):
            yield self._event({"content": line})
        yield self._event({}, self._finish_reason)
        if self.request.stream_options and self.request.stream_options.include_usage:
            yield _sse({**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage})
        yield b"data: [DONE]\n\n"

    @property
    def _finish_reason(self) -> str:
        return "length" if self.completion.completion_tokens >= self.request.limit_tokens else "stop"

    @property
    def _usage(self) -> dict[str, int]:
        prompt, completion = self.completion.prompt_tokens, self.completion.completion_tokens
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.request.digest[:24]}",
            "object": kind,
            "created": self.created_s,
            "model": self.request.model,
        }

    def _event(self, delta: Mapping[str, str], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return _sse({**self._head("chat.completion.chunk"), "choices": [choice]})


def _sse(document: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def _read(kind: type[_Request], body: bytes) -> _Request:
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        param = str(first["loc"][0]) if first["loc"] else None
        where = f"{param}: " if param else ""
        raise ApiError(400, f"{where}{first['msg']}", param=param, code=first["type"]) from error
