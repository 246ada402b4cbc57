"""What a cassette records it replays, whatever was said, and wherever a crash cut the file."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_gym.core.errors import ModelError
from ascend_gym.core.protocols import Completion, Message
from ascend_gym.search.llm.cassette import CassetteLlm, CassetteMode

texts = st.text(st.characters(exclude_categories=()), max_size=30)
questions = st.tuples(
    st.lists(st.builds(Message, st.sampled_from(["system", "user"]), texts), max_size=2).map(tuple),
    st.integers(0, 2**31 - 1),
    st.integers(1, 10**6),
)
answers = st.builds(Completion, texts, st.integers(0, 10**9), st.integers(0, 10**9), texts)


class Scripted:
    """Answers each question as the table says and counts how often it is asked."""

    def __init__(self, table):
        self.table, self.asked = table, 0

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        self.asked += 1
        return self.table[(tuple(messages), seed, max_tokens)]


def _ask(llm, question):
    messages, seed, max_tokens = question
    completion = llm.complete(messages, seed=seed, max_tokens=max_tokens, deadline_s=5.0)
    return Completion(
        completion.text, completion.prompt_tokens, completion.completion_tokens, completion.model
    )


@settings(max_examples=25)
@given(st.dictionaries(questions, answers, min_size=1, max_size=6), st.data())
def test_recorded_answers_come_back_and_a_torn_one_is_asked_again(table, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonl"
        model = Scripted(table)
        cassette = CassetteLlm(model, path, CassetteMode.RECORD, model="m")
        assert [_ask(cassette, question) for question in table] == list(table.values())
        assert [_ask(cassette, question) for question in table] == list(table.values())
        cassette.close()
        assert model.asked == len(table)

        replay = CassetteLlm(None, path, CassetteMode.REPLAY, model="m")
        assert [_ask(replay, question) for question in table] == list(table.values())

        content = path.read_bytes()
        path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
        torn = path.read_bytes()
        damaged = CassetteLlm(None, path, CassetteMode.REPLAY, model="m")
        known = 0
        for question, answer in table.items():
            try:
                assert _ask(damaged, question) == answer
                known += 1
            except ModelError:
                pass
        assert known < len(table)
        assert path.read_bytes() == torn

        again = Scripted(table)
        mended = CassetteLlm(again, path, CassetteMode.RECORD, model="m")
        assert [_ask(mended, question) for question in table] == list(table.values())
        mended.close()
        assert again.asked == len(table) - known
        whole = CassetteLlm(None, path, CassetteMode.REPLAY, model="m")
        assert [_ask(whole, question) for question in table] == list(table.values())
