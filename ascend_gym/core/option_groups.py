"""Options of commands in groups: a command takes a dataclass, and its users see an option for each field."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with an option for each field of the dataclasses among its parameters.

    A field is annotated as a parameter of a command would be: ``Annotated[TYPE, typer.Option(...)]``.

    Args:
        command: function for ``typer``, whose parameters of such types have no default.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    hints = get_type_hints(command, include_extras=True)
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if not is_dataclass(hint):
            parameters.append(parameter.replace(annotation=hint, kind=parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = hint
        options = get_type_hints(hint, include_extras=True)
        parameters += [
            inspect.Parameter(
                each.name,
                parameter.KEYWORD_ONLY,
                default=parameter.empty if each.default is MISSING else each.default,
                annotation=options[each.name],
            )
            for each in fields(hint)
        ]

    @wraps(command)
    def called(**given: Any) -> None:
        made = {
            name: group(**{each.name: given.pop(each.name) for each in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def flat(*groups: Any) -> dict[str, Any]:
    """Return all options of some groups by name."""
    return {name: value for group in groups for name, value in vars(group).items()}
