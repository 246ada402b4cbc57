"""Methods with settings of their own, written as one word, for comparisons."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from ascend_gym.cli.methods import Method, RunSettings
from ascend_gym.cli.outside_methods import entry_point_names
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.toml_file import reason_of

_OF_THE_RUN = frozenset({"operator", "op_dir", "method", "seed", "budget", "chip", "chip_file"})
_COMMON = _OF_THE_RUN | {
    "model",
    "offline_model",
    "temperature",
    "reasoning_effort",
    "max_tokens",
    "price",
    "device_seconds",
    "tokens",
    "usd",
    "stop_after",
}
_ABLATION = "no-"


def variant_settings(variant: str, **settings: Any) -> RunSettings:
    """Return the settings of a run of ``METHOD`` or ``METHOD:SETTING,SETTING...``.

    A method from outside this package is ``FILE.py:CLASS``, ``MODULE:CLASS``, or the name of an entry point.

    A setting is ``name=value``, or ``no-PART`` to disable a part of the method:
    ``ascend-optimizer:no-experience`` runs with ``ablate=["experience"]``.

    Args:
        variant: method with its special settings.
        settings: common settings of all runs: operator, budget, seed ...

    Raises:
        MisuseError: the method does not exist, or has no such setting.
    """
    name, specials = _split(variant)
    try:
        own = _own_settings(specials.split(",") if specials is not None else [])
        return RunSettings.model_validate({**settings, "method": name, **own})
    except ValueError as error:
        reason = reason_of(error) if isinstance(error, ValidationError) else str(error)
        settable = ", ".join(sorted(set(RunSettings.model_fields) - _OF_THE_RUN))
        raise MisuseError(f"{variant!r}: {reason}; what a variant may set: {settable}") from error


def _split(variant: str) -> tuple[str, str | None]:
    """Return the method, whose name may contain a colon itself (``FILE.py:CLASS``), and its settings."""
    name, colon, rest = variant.partition(":")
    if name not in {*(method.value for method in Method), *entry_point_names()} and colon:
        attribute, colon, rest = rest.partition(":")
        name = f"{name}:{attribute}"
    return name, rest if colon else None


def _own_settings(specials: list[str]) -> dict[str, Any]:
    own: dict[str, Any] = {}
    for special in specials:
        name, equals, value = special.partition("=")
        if not equals and special.startswith(_ABLATION):
            own.setdefault("ablate", []).append(special.removeprefix(_ABLATION))
        elif not equals:
            raise ValueError(f"expected name=value or no-PART, got {special!r}")
        elif name in own:
            raise ValueError(f"{name!r} is set twice")
        else:
            own[name] = value
    forbidden = sorted(set(own) & _OF_THE_RUN | set(own) - set(RunSettings.model_fields))
    if forbidden:
        raise ValueError(f"a variant has no setting {forbidden[0]!r}")
    return own


def variant_name(settings: RunSettings) -> str:
    """Return the method with its special settings, in the format of ``variant_settings``."""
    given = settings.model_dump(mode="json", exclude_defaults=True, exclude=set(_COMMON))
    ablated = [f"{_ABLATION}{part}" for part in given.pop("ablate", [])]
    specials = [*ablated, *(f"{name}={value}" for name, value in sorted(given.items()))]
    return ":".join([settings.method_name, *([",".join(specials)] if specials else [])])
