"""Degenerate answers, the same few characters up to the limit of the answer, are read in linear time."""

import time

import pytest
from conftest import make_candidate

from agents.ascend_optimizer.distill import fields_of_answer
from agents.ascend_optimizer.refine import read_diagnosis
from agents.ascend_optimizer.rewind import rewound_from_answer
from ascend_gym.rewrites.answer import candidate_from_answer

_LENGTH_CHARS = 30_000  # at quadratic time 5 s to 45 s (measured on smaller ones)
_LIMIT_S = 3.0
_READERS = {
    "candidate": lambda answer: candidate_from_answer(answer, make_candidate()),
    "diagnosis": read_diagnosis,
    "rewind": lambda answer: rewound_from_answer(answer, make_candidate()),
    "distillation": fields_of_answer,
}
_BEGINNINGS = ("", "```", "Motif: a", "Bottleneck: a", "### FILE: ")


@pytest.mark.parametrize("reader", _READERS.values(), ids=_READERS.keys())
@pytest.mark.parametrize("pattern", ["-", ".", "a", "\n", " ", "./", "- \n", "= "])
def test_endless_answers_are_read_in_linear_time(reader, pattern):
    began_s = time.process_time()
    for beginning in _BEGINNINGS:
        assert reader(beginning + pattern * (_LENGTH_CHARS // len(pattern)) + "x") is not None
    assert time.process_time() - began_s < _LIMIT_S
