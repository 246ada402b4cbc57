"""The examples of docs/staged.md are right, and nothing else is said of them."""

import re
from pathlib import Path

import pytest

from agents.ascend_craft.checking import checked
from ascend_gym.staged.examples import example_named, example_names
from ascend_gym.staged.lower import lower
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.sources import read_candidate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "staged.md"
EXAMPLE = re.compile(r"^### [^\n]*`(generate/\w+)`\n.*?^```python\n(.*?)^```$", re.M | re.S)
LISTED = re.compile(r"^\| `(\w+)` \| ", re.M)
EXAMPLES = {example_named(name).spec.op_id: example_named(name).text for name in example_names()}


def test_a_lowered_program_is_an_operator_folder(tmp_path):
    spec = load_operator("generate/relu")
    candidate = lower(checked(spec, EXAMPLES[spec.op_id], spec.cases[1:]))
    for path, text in candidate.texts.items():
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert read_candidate(tmp_path, spec.name) == candidate


def test_the_page_lists_all_and_shows_some_as_they_are():
    page = PAGE.read_text(encoding="utf-8")
    listed = LISTED.findall(page[page.index("## Examples") :])
    assert sorted(f"generate/{name}" for name in listed) == sorted(EXAMPLES)
    shown = dict(EXAMPLE.findall(page))
    assert len(shown) == 2
    assert shown.items() <= EXAMPLES.items()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_verified_and_agrees_with_the_reference(name):
    spec = load_operator(name)
    smallest = min(spec.cases, key=lambda case: case.traffic_bytes)
    verified = checked(spec, EXAMPLES[name], (smallest,))
    assert lower(verified) == lower(checked(spec, EXAMPLES[name], (smallest,)))
