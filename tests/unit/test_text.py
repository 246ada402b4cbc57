"""Text that reaches a file, a socket or a journal can be written as UTF-8."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_gym.core.protocols import Completion
from ascend_gym.core.records import Diagnostic, Phase, SourceFile
from ascend_gym.core.text import well_formed

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT)
def test_well_formed_text_is_utf8_and_stays_as_it_is(text):
    clean = well_formed(text)
    clean.encode()
    assert well_formed(clean) == clean
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert clean == text


def test_lone_surrogates_are_replaced_and_pairs_joined():
    assert well_formed("a\ud800b\udfffc\ud83d\ude80") == "a\ufffdb\ufffdc\U0001f680"


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [("a\ud800.cpp", "", "source path must .* letters, digits"), ("a.cpp", "\udfff", "no lone surrogates")],
)
def test_a_source_file_refuses_lone_surrogates(path, text, complaint):
    with pytest.raises(ValueError, match=complaint):
        SourceFile(path=path, text=text)


def test_completions_and_diagnostics_replace_them():
    assert Completion("\ud800", 1, 1, "m\ud800") == Completion("\ufffd", 1, 1, "m\ufffd")
    diagnostic = Diagnostic(phase=Phase.VERIFY, message="\ud800", call="c\ud800")
    assert (diagnostic.message, diagnostic.call) == ("\ufffd", "c\ufffd")
    diagnostic.model_dump_json()
