"""Language models: endpoints in the OpenAI format, and an offline model that needs none."""

from __future__ import annotations

from dataclasses import replace

from ascend_gym.core.config import openai_api_key, openai_base_url
from ascend_gym.core.protocols import Embedder, Llm
from ascend_gym.search.llm.limits import CallLimits

OFFLINE_MODEL = "offline"


def model_named(
    name: str,
    *,
    base_url: str | None = None,
    temperature: float | None = None,
    reasoning_effort: str | None = None,
    limits: CallLimits | None = None,
) -> Llm:
    """Return the model of that name: ``offline``, or one at an endpoint in the OpenAI format.

    The key of the endpoint comes from the environment alone.

    Args:
        name: name of the model; with a ``base_url``, ``offline`` too is a model of the endpoint.
        base_url: address of the endpoint; ``None`` means the one that the environment names.
        temperature: sampling temperature; ``None`` leaves it to the endpoint.
        reasoning_effort: how much a model may reason, in its own words; ``None`` leaves it to the endpoint.
        limits: attempts, rates and sizes of the calls.

    Raises:
        MisuseError: there is no endpoint, or its address cannot be right.
    """
    if name == OFFLINE_MODEL and base_url is None:
        from ascend_gym.search.llm.offline import OfflineModel  # loads a C++ parser

        return OfflineModel()
    from ascend_gym.search.llm.openai_endpoint import OpenAiEndpoint

    address = base_url or openai_base_url()
    return OpenAiEndpoint(
        name,
        base_url=address,
        api_key=openai_api_key(),
        temperature=temperature,
        reasoning_effort=reasoning_effort,
        limits=limits,
    )


def embedder_named(name: str, *, base_url: str | None = None, limits: CallLimits | None = None) -> Embedder:
    """Return the embedding model of that name at an endpoint in the OpenAI format.

    Args:
        name: name of the model.
        base_url: address of the endpoint; ``None`` means the one that the environment names.
        limits: attempts, rates and concurrency of the calls; answers may be as long as vectors are.

    Raises:
        MisuseError: there is no endpoint, or its address cannot be right.
    """
    from ascend_gym.search.llm.embeddings import MAX_VECTORS_BYTES, OpenAiEmbedder
    from ascend_gym.search.llm.openai_responses import split_address

    limits = replace(limits or CallLimits(), max_answer_bytes=MAX_VECTORS_BYTES)
    address, _ = split_address(base_url or openai_base_url())
    return OpenAiEmbedder(name, base_url=address, api_key=openai_api_key(), limits=limits)
