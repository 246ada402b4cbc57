"""Methods with settings of their own, written as one word."""

from importlib.util import find_spec

import pytest

from ascend_gym.cli.methods import BUILT_IN, Method, RunSettings
from ascend_gym.cli.variants import variant_settings
from ascend_gym.core.errors import MisuseError
from ascend_gym.search.search_rules import Duplicates


def test_a_method_alone_takes_what_is_common():
    settings = variant_settings("best-of-n", operator="core/gelu", seed=3, budget=7)
    assert (settings.method, settings.operator, settings.seed, settings.budget) == (
        Method.BEST_OF_N,
        "core/gelu",
        3,
        7,
    )


def test_settings_of_a_variant_win_over_common_ones():
    settings = variant_settings("best-of-n:model=other,duplicates=free", operator="a", model="offline")
    assert (settings.model, settings.duplicates) == ("other", Duplicates.FREE)


@pytest.mark.parametrize(
    ("variant", "reason"),
    [
        ("magic", "no method 'magic'"),
        ("", "no method ''"),
        ("best-of-n:", "expected name=value"),
        ("best-of-n:fast", "expected name=value"),
        ("best-of-n:speed=9", "no setting 'speed'"),
        ("best-of-n:seed=9", "no setting 'seed'"),
        ("best-of-n:model=a,model=b", "set twice"),
        ("best-of-n:duplicates=never", "charged"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(variant, reason):
    with pytest.raises(MisuseError, match=reason):
        variant_settings(variant, operator="a")


def test_every_method_is_declared_once_with_a_module_and_settings_that_there_are():
    assert set(BUILT_IN) == set(Method)
    for declared in BUILT_IN.values():
        assert find_spec(declared.module) is not None
        assert declared.settings <= set(RunSettings.model_fields)
