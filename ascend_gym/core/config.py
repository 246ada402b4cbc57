"""Settings that come from the process environment: the only module that reads it."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

ENV_DAEMON = "ASCEND_GYM_DAEMON"
ENV_CACHE = "ASCEND_GYM_CACHE"
ENV_KEYS = "ASCEND_GYM_KEYS"
DAEMON_SETTING_PREFIX = "NPU_DAEMON_"
ENV_OPENAI_BASE_URL = "OPENAI_BASE_URL"
ENV_OPENAI_API_KEY = "OPENAI_API_KEY"


def cache_root() -> Path:
    """Return the folder for builds, inputs and results: ``$ASCEND_GYM_CACHE`` or ``~/.cache/ascend-gym``."""
    configured = os.environ.get(ENV_CACHE)
    return Path(configured) if configured else Path.home() / ".cache" / "ascend-gym"


def default_daemon_addresses() -> tuple[str, ...]:
    """Return the addresses in ``$ASCEND_GYM_DAEMON``, separated by commas; none when it is unset."""
    configured = os.environ.get(ENV_DAEMON, "").split(",")
    return tuple(address.strip() for address in configured if address.strip())


def keys_folder() -> Path:
    """Return the folder of keys for daemons: ``$ASCEND_GYM_KEYS`` or ``~/.config/ascend-gym/keys``."""
    configured = os.environ.get(ENV_KEYS)
    return Path(configured) if configured else Path.home() / ".config" / "ascend-gym" / "keys"


def daemon_settings() -> dict[str, str]:
    """Return the settings of a daemon that the environment has, by their names in lower case.

    ``NPU_DAEMON_MAX_DEVICE_SECONDS=60`` is ``{"max_device_seconds": "60"}``.
    """
    return {
        name.removeprefix(DAEMON_SETTING_PREFIX).lower(): value
        for name, value in os.environ.items()
        if name.startswith(DAEMON_SETTING_PREFIX)
    }


def openai_base_url() -> str | None:
    """Return ``$OPENAI_BASE_URL``, the address of an OpenAI-compatible endpoint, or ``None`` when unset."""
    return os.environ.get(ENV_OPENAI_BASE_URL) or None


def openai_api_key() -> str | None:
    """Return ``$OPENAI_API_KEY``, or ``None`` when unset."""
    return os.environ.get(ENV_OPENAI_API_KEY) or None


def set_up_own_ray() -> None:
    """Prepare this process for starting a Ray of its own that obeys nobody else; before Ray is imported.

    Ray listens on all interfaces, and a token that it makes up itself would stay in the home folder, where
    later clusters insist on it. What the user has set stays as it is.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if "ray" in sys.modules:  # it has read the settings of its authentication
        return
    if not any(name in os.environ for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")):
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


def child_environment(**settings: str) -> dict[str, str]:
    """Return this process's environment with ``settings``, and without the endpoint's key, for a child."""
    inherited = {name: value for name, value in os.environ.items() if name != ENV_OPENAI_API_KEY}
    return {**inherited, **settings}
