"""Shell completion of operators, suites, methods and chips."""

from __future__ import annotations

from collections.abc import Iterable

from ascend_gym.core.chips import CHIPS


def operators_beginning(incomplete: str) -> list[str]:
    """Return matching operators and suites; bare names unless a suite is typed."""
    from ascend_gym.suite.loader import operator_names, suite_names

    names = operator_names()
    full = [f"{suite}/{name}" for suite, name in names]
    return _beginning([*suite_names(), *(name for _, name in names), *full], incomplete)


def suites_beginning(incomplete: str) -> list[str]:
    """Return matching suites."""
    from ascend_gym.suite.loader import suite_names

    return _beginning(suite_names(), incomplete)


def methods_beginning(incomplete: str) -> list[str]:
    """Return matching search methods."""
    from ascend_gym.cli.methods import Method
    from ascend_gym.cli.outside_methods import entry_point_names

    return _beginning([*(method.value for method in Method), *entry_point_names()], incomplete)


def chips_beginning(incomplete: str) -> list[str]:
    """Return matching chips."""
    return _beginning(CHIPS, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names with a prefix, including the suite only if one is typed."""
    found = dict.fromkeys(name for name in names if name.startswith(incomplete))
    return [name for name in found if "/" in incomplete or "/" not in name]
