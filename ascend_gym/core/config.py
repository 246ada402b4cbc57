"""Settings from environment variables; no other module reads them."""

from __future__ import annotations

import errno
import math
import os
import secrets
import sys
from pathlib import Path

from ascend_gym.core.errors import InfrastructureError, MisuseError

ENV_DAEMON = "ASCEND_GYM_DAEMON"
ENV_CONNECT_TIMEOUT = "ASCEND_GYM_CONNECT_TIMEOUT_S"
ENV_CACHE = "ASCEND_GYM_CACHE"
ENV_USER_CACHE = "XDG_CACHE_HOME"
ENV_KEYS = "ASCEND_GYM_KEYS"
ENV_CHIP_FILES = "ASCEND_GYM_CHIP_FILES"
DAEMON_SETTING_PREFIX = "NPU_DAEMON_"
ENV_OPENAI_BASE_URL = "OPENAI_BASE_URL"
ENV_OPENAI_API_KEY = "OPENAI_API_KEY"


def cache_root() -> Path:
    """Return the folder for builds, inputs and results.

    It is ``$ASCEND_GYM_CACHE``, else ``ascend-gym`` below ``$XDG_CACHE_HOME``, else ``~/.cache/ascend-gym``.

    Raises:
        MisuseError: neither variable is set, and this user has no home folder.
    """
    configured = os.environ.get(ENV_CACHE)
    if configured:
        return Path(configured)
    of_user = Path(os.environ.get(ENV_USER_CACHE, ""))
    if of_user.is_absolute():  # others do not count, says the XDG base directory specification
        return of_user / "ascend-gym"
    try:
        return Path.home() / ".cache" / "ascend-gym"
    except RuntimeError as error:
        raise MisuseError(f"there is no home folder for the cache: name a folder by {ENV_CACHE}") from error


def usable_cache(folder: Path) -> Path:
    """Return a cache folder, creating it if necessary.

    Raises:
        InfrastructureError: it cannot be created or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "it cannot be written to")
    except OSError as error:
        raise InfrastructureError(
            f"the cache folder {folder} cannot be used: {error.strerror}; name another one by {ENV_CACHE}"
        ) from error
    return folder


def default_daemon_addresses() -> tuple[str, ...]:
    """Return the comma-separated addresses in ``$ASCEND_GYM_DAEMON``; empty if it is unset."""
    configured = os.environ.get(ENV_DAEMON, "").split(",")
    return tuple(address.strip() for address in configured if address.strip())


def default_connect_timeout_s() -> float | None:
    """Return ``$ASCEND_GYM_CONNECT_TIMEOUT_S``, how long a daemon may be unreachable; ``None`` if unset.

    Raises:
        MisuseError: it is not a positive number.
    """
    configured = os.environ.get(ENV_CONNECT_TIMEOUT)
    if not configured:
        return None
    try:
        timeout_s = float(configured)
    except ValueError:
        timeout_s = math.nan
    if not timeout_s > 0:
        raise MisuseError(f"{ENV_CONNECT_TIMEOUT}={configured!r}: expected seconds above 0")
    return timeout_s


def set_connect_timeout(timeout_s: float) -> None:
    """Set ``default_connect_timeout_s`` of this process and of those that it starts."""
    os.environ[ENV_CONNECT_TIMEOUT] = str(timeout_s)


def chip_files() -> tuple[Path, ...]:
    """Return the files in ``$ASCEND_GYM_CHIP_FILES``, separated as in ``$PATH``; none when it is unset."""
    configured = os.environ.get(ENV_CHIP_FILES, "").split(os.pathsep)
    return tuple(Path(name) for name in configured if name)


def add_chip_file(path: Path) -> None:
    """Add a file to ``chip_files`` of this process and of those that it starts."""
    known = chip_files()
    if path not in known:
        os.environ[ENV_CHIP_FILES] = os.pathsep.join(map(str, (*known, path)))


def keys_folder() -> Path:
    """Return the folder of daemon and client keys: ``$ASCEND_GYM_KEYS`` or ``~/.config/ascend-gym/keys``."""
    configured = os.environ.get(ENV_KEYS)
    return Path(configured) if configured else Path.home() / ".config" / "ascend-gym" / "keys"


def daemon_settings() -> dict[str, str]:
    """Return the daemon settings from environment variables, by their lower-case names.

    ``NPU_DAEMON_MAX_DEVICE_SECONDS=60`` becomes ``{"max_device_seconds": "60"}``.
    """
    return {
        name.removeprefix(DAEMON_SETTING_PREFIX).lower(): value
        for name, value in os.environ.items()
        if name.startswith(DAEMON_SETTING_PREFIX)
    }


def openai_base_url() -> str | None:
    """Return ``$OPENAI_BASE_URL``, the address of an OpenAI-compatible endpoint; ``None`` if unset."""
    return os.environ.get(ENV_OPENAI_BASE_URL) or None


def openai_api_key() -> str | None:
    """Return ``$OPENAI_API_KEY``; ``None`` if unset."""
    return os.environ.get(ENV_OPENAI_API_KEY) or None


def set_up_own_ray() -> None:
    """Require a token for a Ray instance that this process starts; call before importing Ray.

    Ray listens on all interfaces. A token that Ray generates itself would be saved in the home folder, and
    later clusters would then require it. Variables that the user has set are kept.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if "ray" in sys.modules:  # it has read the settings of its authentication
        return
    if not any(name in os.environ for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")):
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


def child_environment(**settings: str) -> dict[str, str]:
    """Return the environment of a child process: ours with ``settings``, without the endpoint's key."""
    inherited = {name: value for name, value in os.environ.items() if name != ENV_OPENAI_API_KEY}
    return {**inherited, **settings}
