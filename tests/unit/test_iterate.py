"""Iterate: conversations that go on from the best and remember what failed, whatever is under way."""

import re

import pytest
from conftest import FakeEvaluator, make_spec, ok_result

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Completion
from ascend_gym.core.records import MeasureProtocol
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import JOURNAL_NAME, Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.llm.sheets import CALLS_HEADING, TARGET_HEADING
from ascend_gym.search.llm.tools import Toolbox
from ascend_gym.search.model_client import ModelClient
from ascend_gym.suite.requests import request_for
from baselines.iterate import Iterate

SPEC = make_spec(tiling="int tiling = 0;\n", kernel="int kernel = 0;\n")
RICH = make_spec(
    tiling="constexpr uint32_t TILE_LENGTH = 1024;\nconstexpr uint32_t BLOCK_DIM = 8;\n",
    kernel="""\
constexpr int32_t BUFFER_NUM = 1;
class K {
    void Compute(uint32_t n)
    {
        Mul(d, d, a, n);
        PipeBarrier<PIPE_ALL>();
        Add(d, d, b, n);
    }
};
""",
)


class Editor:
    """Rewrites both sides to have the next latency of a list; what is no number is said as it stands."""

    def __init__(self, *latencies):
        self.latencies = list(latencies)
        self.conversations = []

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        self.conversations.append(list(messages))
        wanted = self.latencies.pop(0)
        if isinstance(wanted, str):
            return Completion(wanted, 10, 5, "editor")
        number = len(self.conversations)
        text = f"int kernel = {number}; // latency: {wanted}\nint tiling = {number};\n"
        files = [f"### FILE: op_{side}/toy.cpp\n```cpp\n{text}```\n" for side in ("host", "kernel")]
        return Completion(f"Because {number}.\n" + "".join(files), 10, 5, "editor")


def _search(folder, llm, *, budget, spec=SPEC, in_flight=1, **options):
    strategy = Iterate(spec, ModelClient(llm, seed=0), budget=budget, **options)
    with Journal(folder) as journal:
        ledger = BudgetLedger(Budget(budget))
        return run_search(spec, strategy, FakeEvaluator(), ledger, journal, in_flight=in_flight)


def _last(conversation):
    return conversation[-1].content


def _base(conversation):
    state = "".join(message.content for message in conversation).split("## Sources of the fastest version")[1]
    return re.search(r"int kernel = (\d+);", state)[1]


def test_it_goes_on_from_what_is_correct_and_faster(tmp_path):
    model = Editor(90, 95, "nothing", "nothing", 80)
    outcome = _search(tmp_path, model, budget=4)
    assert outcome.best_latency_us == pytest.approx(80)
    assert [_base(each) for each in model.conversations] == ["0", "1", "1", "1", "1"]
    assert "op_host/toy.cpp" in _last(model.conversations[0])


def test_a_conversation_holds_answers_and_what_they_came_to(tmp_path):
    model = Editor(90, "no changes here", "no changes here", 95, 70)
    _search(tmp_path, model, budget=4)
    first, *_, last = model.conversations
    assert [message.role for message in first] == ["system", "user"]
    assert TARGET_HEADING in first[0].content
    assert CALLS_HEADING in first[0].content
    assert [message.role for message in last] == ["system", *["user", "assistant"] * 3, "user"]
    assert last[2].content.startswith("Because 1.")
    assert (
        "### Attempt 1, kept: 100.00 -> 90.00 us\n- small 50.00 -> 45.00 us; large 200.00" in last[3].content
    )
    assert "+int kernel = 1; // latency: 90" in last[3].content
    assert "### Attempt 2, failed: build_error\n- [request] unusable answer (no_files)" in last[5].content
    assert "### Attempt 3, not faster: 90.00 -> 95.00 us" in _last(last)
    assert "Evaluations left, with that of this answer: 1." in _last(last)
    assert sum("## Sources of the fastest version" in message.content for message in last) == 1


def test_long_conversations_keep_their_end_and_a_list_of_what_came_before(tmp_path):
    model = Editor(*[101 + number for number in range(9)])
    _search(tmp_path, model, budget=9)
    last = model.conversations[-1]
    assert sum(message.role == "assistant" for message in last) == 6
    assert "### Attempt 2, not faster" in last[1].content
    assert "### Attempt 3, " in last[3].content


def test_who_is_stuck_is_told_and_takes_over_the_fastest_version(tmp_path):
    model = Editor(50, 101, 102, 103, 104, 105, 106, 107)
    _search(tmp_path, model, budget=8, islands=2, patience=2)
    bases = [_base(each) for each in model.conversations]
    assert bases == ["0", "0", "1", "0", "1", "1", "1", "1"]
    told = [_last(each) for each in model.conversations]
    assert ["The last 2 answers gained nothing" in each for each in told] == [False] * 6 + [True, False]


def test_the_journal_does_not_depend_on_evaluations_under_way(tmp_path):
    journals = []
    for in_flight in (1, 3):
        folder = tmp_path / str(in_flight)
        folder.mkdir()
        _search(folder, OfflineModel(), budget=6, spec=RICH, islands=2, in_flight=in_flight)
        journals.append((folder / JOURNAL_NAME).read_bytes())
    assert journals[0] == journals[1]


def test_the_offline_model_answers_with_what_was_not_attempted(tmp_path):
    outcome = _search(tmp_path, OfflineModel(), budget=5, spec=RICH)
    digests = [step.proposal.candidate.digest for step in outcome.history]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize("options", [{"islands": 0}, {"patience": 0}])
def test_conversations_that_cannot_be_are_refused(options):
    with pytest.raises(MisuseError):
        Iterate(SPEC, ModelClient(OfflineModel(), seed=0), budget=1, **options)


def test_what_a_model_looks_up_costs_tokens_and_no_evaluation(tmp_path):
    model = Editor(
        "I need to know more.\nTOOL: lookup DataCopyPad\nTOOL: profile\nTOOL: lookup NoSuchCall",
        "- TOOL: evaluate first",
        "`TOOL: profile nowhere`",
        "TOOL: profile",  # one round too many: an answer without changes, asked again like any other
        50.0,
        40.0,
    )
    outcome = _search(tmp_path, model, budget=2, tools=True)
    assert outcome.evaluations == 2
    assert [round(step.result.latency_us) for step in outcome.history[1:]] == [50, 40]
    first, second, third, fourth, fifth, _ = model.conversations
    assert "TOOL: lookup NAME" in first[0].content
    page, profile, unknown = re.split(r"^### ", second[-1].content, flags=re.M)[1:]
    assert page.startswith("lookup DataCopyPad\nForms and limits are told above. For example: `DataCopyPad(")
    assert "task_duration_us=" in profile
    assert "has no 'NoSuchCall'" in unknown
    assert "There is no tool 'evaluate'" in third[-1].content
    assert "There is no case 'nowhere'" in fourth[-1].content
    assert fourth[-1].content.endswith("Now give your changes.")
    assert len(fifth) == len(fourth) + 2
    with Journal(tmp_path) as journal:
        origins = [record["origin"] for record in journal.records if record["kind"] == "proposal"][1:]
    purposes = [call["purpose"][3:] for call in origins[0]["calls"]]
    assert purposes == [[], ["tool", 1], ["tool", 2], ["tool", 3], ["again"]]
    assert outcome.history[1].proposal.origin["calls"] == origins[0]["calls"]


def test_tools_are_offered_where_they_are_wanted_alone(tmp_path):
    model = Editor(50.0)
    _search(tmp_path, model, budget=1)
    assert "TOOL:" not in "".join(message.content for message in model.conversations[0])


def _measured():
    """Return a result whose first case has no profile."""
    result = ok_result(request_for(SPEC, SPEC.baseline, MeasureProtocol()), 10.0)
    small, large = result.cases
    return result.model_copy(update={"cases": (small.model_copy(update={"profile": None}), large)})


DIFF = """--- a/op_kernel/toy.cpp
+++ b/op_kernel/toy.cpp
@@ -1 +1 @@
-// old
+// new
TOOL: profile
"""


@pytest.mark.parametrize("answer", [DIFF, f"diff --git a/x b/x\n{DIFF}", f"*** Begin Patch\n{DIFF[47:]}"])
def test_changes_in_any_form_come_before_tools(answer):
    assert Toolbox(_measured()).reply(answer) is None
    assert Toolbox(_measured()).reply("```\nTOOL: profile\n```")


def test_a_call_is_told_in_full_once():
    toolbox = Toolbox(_measured())
    once, again = (toolbox.reply("TOOL: lookup AscendC::DataCopyPad") for _ in range(2))
    assert "\n- `DataCopyPad(" in once
    assert "told above" in again


def test_a_case_without_a_profile_is_told_as_such():
    assert "Not profiled: small" in Toolbox(_measured()).reply("TOOL: profile small")
    assert "There is no case 'c9'; there are: small, large" in Toolbox(_measured()).reply("TOOL: profile c9")


def test_a_baseline_that_was_left_behind_is_not_called_the_present_implementation(tmp_path):
    editor = Editor(90.0, 80.0)
    _search(tmp_path, editor, budget=2)
    first, second = (conversation[1].content for conversation in editor.conversations)
    assert "The present implementation, measured on" in first
    assert "The present implementation" not in second
    assert "What the run began with, measured on" in second


def _system_and_task(conversation):
    return conversation[0].content, conversation[1].content.split("## Attempted before")[0]


def test_concise_questions_begin_alike_and_tell_the_last_two_attempts_in_full(tmp_path):
    model = Editor(90, 120, 80, 70, 95)
    outcome = _search(tmp_path, model, budget=5, concise=True)
    assert outcome.best_latency_us == pytest.approx(70)
    assert len({_system_and_task(each) for each in model.conversations}) == 1
    last = model.conversations[-1]
    assert [message.role for message in last] == ["system", *["user", "assistant"] * 2, "user"]
    assert "- Attempt 1, kept: 100.00 -> 90.00 us" in last[1].content
    assert "- Attempt 2, not faster: 90.00 -> 120.00 us" in last[1].content
    assert "~~~~diff" not in last[1].content
    assert "### Attempt 4, kept: 80.00 -> 70.00 us" in _last(last)
    assert (
        "What the run began with, measured on the device:\n100.00 us, by case: small 50.00, large 200.00"
        in (last[1].content)
    )
    assert "As above." not in _last(model.conversations[0])


def _file(side, text):
    return f"### FILE: op_{side}/toy.cpp\n```cpp\n{text}\n```\n"


def test_concise_answers_build_upon_any_attempt(tmp_path):
    first = _file("host", "int tiling = 1;") + _file("kernel", "int kernel = 1; // latency: 90")
    second = _file("host", "int tiling = 2;") + _file("kernel", "int kernel = 2; // latency: 120")
    third = "On the second.\nBASE: attempt 2\n" + _file("kernel", "int kernel = 3; // latency: 60")
    fourth = "Both.\nTAKE: op_host/toy.cpp FROM attempt 1"
    model = Editor(first, second, third, fourth, "BASE: attempt 7", "BASE: attempt 7")
    outcome = _search(tmp_path, model, budget=5, concise=True)
    proposals = [step.proposal for step in outcome.history[1:]]
    assert proposals[2].origin["base"] == 2
    assert [proposal.candidate.tiling_text for proposal in proposals[:4]] == [
        f"int tiling = {number};\n" for number in (1, 2, 2, 1)
    ]
    assert proposals[3].candidate.kernel_text == proposals[2].candidate.kernel_text
    assert "expected one 'BASE: attempt N', and N out of original, 1, 2, 3, 4" in _last(
        model.conversations[5]
    )
    told = model.conversations[3][-1].content
    assert "### Attempt 3, kept: 90.00 -> 60.00 us" in told
    assert "~~~~diff" not in told  # the sources that follow have it


def test_a_repeated_attempt_is_asked_for_again_and_costs_nothing(tmp_path):
    first = "".join(
        f"### FILE: op_{side}/toy.cpp\n```cpp\nint x = 1; // latency: 90\n```\n"
        for side in ("host", "kernel")
    )
    model = Editor(first, 120, f"BASE: original\n{first}", 80)
    outcome = _search(tmp_path, model, budget=3, concise=True)
    assert outcome.evaluations == 3
    assert outcome.best_latency_us == pytest.approx(80)
    assert "this is attempt 1 once more, whose result is known" in _last(model.conversations[3])
