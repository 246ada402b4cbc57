"""Language models: endpoints in the OpenAI format, and an offline model that needs none."""

from __future__ import annotations

from ascend_gym.core.config import openai_api_key, openai_base_url
from ascend_gym.core.protocols import Llm

OFFLINE_MODEL = "offline"


def model_named(name: str) -> Llm:
    """Return the model of that name: ``offline``, or one at the endpoint that the environment names.

    Raises:
        MisuseError: the environment names no endpoint.
    """
    if name == OFFLINE_MODEL:
        from ascend_gym.search.llm.offline import OfflineModel

        return OfflineModel()
    from ascend_gym.search.llm.openai_endpoint import OpenAiEndpoint  # takes a second to import

    return OpenAiEndpoint(name, base_url=openai_base_url(), api_key=openai_api_key())
