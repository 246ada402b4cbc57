"""Starts ``openevolve_process`` without the client of OpenAI's service.

OpenEvolve imports it with all its types, which takes a second of processor time (four fifths of its start).
It is never called here: completions come from our model, and embeddings are not asked for.
"""

from __future__ import annotations

import sys
from types import ModuleType


class _NoClient:
    """Stands for a client where annotations name one."""


def main() -> None:
    """Run OpenEvolve; see ``openevolve_process``."""
    client = ModuleType("openai")
    vars(client).update(OpenAI=_NoClient, AzureOpenAI=_NoClient)
    sys.modules["openai"] = client
    from baselines.openevolve_process import main as run

    run()
