"""The ``responses`` format of OpenAI's endpoints: other names for the same question and the same answer.

Some models, reasoning models among them, are reached through it alone. Nothing is stored at the endpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ascend_gym.core.protocols import Ending, Message
from ascend_gym.core.text import well_formed, without_thoughts

PATH = "/responses"
"""What an address ends in that is to be asked in this format."""

LIMIT_FIELD = "max_output_tokens"


def split_address(base_url: str | None) -> tuple[str | None, bool]:
    """Return the address of an endpoint without ``/responses``, and whether it ended in that."""
    trimmed = (base_url or "").rstrip("/")
    return (trimmed.removesuffix(PATH), True) if trimmed.endswith(PATH) else (base_url, False)


def request_fields(messages: Sequence[Message], max_tokens: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a question beside its model; seeds are unknown to this format."""
    sent = {name: value for name, value in options.items() if name not in ("seed", "reasoning_effort")}
    if "reasoning_effort" in options:
        sent["reasoning"] = {"effort": options["reasoning_effort"]}
    said = [{"role": message.role, "content": well_formed(message.content)} for message in messages]
    return {"input": said, LIMIT_FIELD: max_tokens, **sent}


def answer_text(answer: Any) -> tuple[str, Ending]:
    """Return what an answer says and why it ended; reasoning is left out, a refusal's words are not.

    Raises:
        ValueError: it is no response, or one that failed.
    """
    output = answer.get("output") if isinstance(answer, dict) else None
    if not isinstance(output, list) or answer.get("status") not in ("completed", "incomplete", None):
        raise ValueError(f"expected a response with an output, got {str(answer)[:200]!r}")
    parts = list(_parts(output))
    text = without_thoughts("".join(said for kind, said in parts if kind == "output_text"))
    refusal = "".join(said for kind, said in parts if kind == "refusal")
    details = answer.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    if reason == LIMIT_FIELD:
        return text, Ending.TOKEN_LIMIT
    if reason == "content_filter" or refusal:
        return text or refusal, Ending.REFUSED
    return text, Ending.COMPLETE


def _parts(output: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield kind and words of each part of the messages; reasoning and calls of tools are no messages."""
    for item in output:
        content = item.get("content") if isinstance(item, dict) and item.get("type") == "message" else None
        for part in content if isinstance(content, list) else []:
            kind = part.get("type") if isinstance(part, dict) else None
            said = part.get("refusal" if kind == "refusal" else "text") if kind else None
            if isinstance(said, str):
                yield str(kind), said
