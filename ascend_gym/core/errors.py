"""Exceptions for caller faults and unreachable infrastructure.

Faults of a candidate are never exceptions: they are ``EvalResult`` values.
"""

from __future__ import annotations


class AscendGymError(Exception):
    """Base class of every exception that this project raises on purpose."""


class MisuseError(AscendGymError):
    """The caller asked for something impossible; the message says what to do instead."""


class OperatorNotFoundError(MisuseError):
    """No operator of that name or folder exists."""


class OperatorFormatError(MisuseError):
    """An operator folder exists but is invalid."""


class InfrastructureError(AscendGymError):
    """A daemon, compiler or host is missing, unreachable or broken."""


class DaemonUnreachableError(InfrastructureError):
    """No daemon answered at the address within the time allowed."""


class BudgetExceededError(AscendGymError):
    """A reservation would exceed the budget."""


class ModelError(InfrastructureError):
    """A language model endpoint could not answer."""


class ModelRefusedError(ModelError):
    """An endpoint that will go on refusing until a person does something; asking again is useless.

    Attributes:
        kind: ``model`` (no such model), ``key`` (none, or a wrong one), ``quota`` (nothing is left to spend
            at the provider) or ``sweep_budget`` (nothing is left of what all runs of a sweep may spend).
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
