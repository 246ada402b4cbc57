"""The offline model: prompt in, answer in the same format out, and nothing known beside the prompt."""

import pytest
from conftest import FakeEvaluator, make_candidate, make_spec

from ascend_gym.core.protocols import Message
from ascend_gym.core.records import Candidate, MeasureProtocol
from ascend_gym.rewrites.answer import ParseProblem, ProblemKind, candidate_from_answer
from ascend_gym.rewrites.library import RULES
from ascend_gym.rewrites.rule import Choice, Site
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.llm.offline.reading import candidate_in, evidence_of
from ascend_gym.search.llm.offline.ub_estimate import UB_BYTES, UbRoom, fits_ub, ub_bytes
from ascend_gym.search.llm.prompts import best_of_n_messages, describe_case, render_sources
from ascend_gym.suite.loader import list_operators, load_operator
from ascend_gym.suite.requests import request_for

TILING = "constexpr uint32_t TILE_LENGTH = 1024;\n"
KERNEL = """\
constexpr int32_t BUFFER_NUM = 1;
class K {
    void Compute(uint32_t n)
    {
        Mul(d, d, a, n);
        PipeBarrier<PIPE_ALL>();
        Add(d, d, b, n);
        PipeBarrier<PIPE_V>();
    }
};
"""
SPEC = make_spec(tiling=TILING, kernel=KERNEL)


def _messages(spec=SPEC, result=None):
    if result is None:
        evaluator = FakeEvaluator()
        evaluator.submit(request_for(spec, spec.baseline, MeasureProtocol()))
        result = evaluator.poll(0)[0][1]
    return best_of_n_messages(spec, result)


def _complete(messages, seed=0, max_tokens=10_000):
    return OfflineModel().complete(messages, seed=seed, max_tokens=max_tokens, deadline_s=1.0)


def _candidates(spec, seeds, messages=None):
    messages = messages or _messages(spec)
    return [candidate_from_answer(_complete(messages, seed).text, spec.baseline) for seed in seeds]


def test_every_answer_is_a_changed_candidate():
    candidates = _candidates(SPEC, range(40))
    assert all(isinstance(candidate, Candidate) for candidate in candidates), candidates
    assert len({candidate.digest for candidate in candidates}) >= 10


def test_answers_combine_rules_and_change_either_or_both_sides():
    candidates = _candidates(SPEC, range(160))
    sides = {(c.tiling_text != TILING, c.kernel_text != KERNEL) for c in candidates}
    assert sides == {(True, False), (False, True), (True, True)}
    assert any("FusedMulAdd(d, a, b, n)" in candidate.kernel_text for candidate in candidates)
    assert any(
        "BUFFER_NUM = 2" in c.kernel_text and "TILE_LENGTH = 2048" in c.tiling_text for c in candidates
    )


def test_the_same_seed_and_prompt_give_the_same_answer():
    assert _complete(_messages(), seed=3) == _complete(_messages(), seed=3)
    answers = {_complete(_messages(), seed=seed).text for seed in range(10)}
    assert len(answers) >= 5


def test_other_words_for_the_same_operator_change_no_draws_and_another_operator_does():
    first, user = _messages()
    other = [Message("system", "another"), user]
    renamed = [first, Message("user", user.content.replace("op_kernel/", "op_kernel/other_"))]
    assert [_complete(_messages(), seed).text for seed in range(5)] == [
        _complete(other, seed).text for seed in range(5)
    ]
    rules = [
        [_complete(messages, seed).text.partition("\n")[0] for seed in range(8)]
        for messages in (_messages(), renamed)
    ]
    assert rules[0] != rules[1]


def test_tokens_are_counted_and_long_answers_are_cut_off():
    whole = _complete(_messages())
    assert whole.prompt_tokens == sum(len(message.content) for message in _messages()) // 4
    assert whole.completion_tokens == len(whole.text) // 4
    cut = _complete(_messages(), max_tokens=5)
    assert cut.text == whole.text[:20]
    assert isinstance(candidate_from_answer(cut.text, SPEC.baseline), ParseProblem)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [Message("user", "Hello, who are you?")],
        [Message("user", "### FILE: op_kernel/toy.cpp\n```cpp\nint x;\n```\n")],
        [
            Message(
                "user",
                "### FILE: op_host/toy.cpp\n```cpp\nint x;\n```\n### FILE: op_kernel/toy.cpp\n```\nint",
            )
        ],
    ],
)
def test_a_prompt_without_an_operator_gets_words(messages):
    problem = candidate_from_answer(_complete(messages).text, make_candidate())
    assert isinstance(problem, ParseProblem)
    assert problem.kind is ProblemKind.NO_FILES


def test_sources_that_no_rule_fits_get_words():
    spec = make_spec(tiling="int a;\n", kernel="int b;\n")
    problem = candidate_from_answer(_complete(_messages(spec)).text, spec.baseline)
    assert isinstance(problem, ParseProblem)
    assert problem.kind is ProblemKind.NO_FILES


def _share(candidates, holds):
    return sum(holds(candidate) for candidate in candidates) / len(candidates)


def test_busy_pipes_call_for_the_rules_that_relieve_them():
    def prompts(vec, mte2):
        user = _messages()[1].content.replace("aiv_vec_ratio=0.500", f"aiv_vec_ratio={vec}")
        user = user.replace("aiv_mte2_ratio=0.500", f"aiv_mte2_ratio={mte2}").replace(
            "_ratio=0.500", "_ratio=0.0"
        )
        return [Message("user", user)]

    def fuses(candidate):
        return "FusedMulAdd" in candidate.kernel_text

    vector_bound = _candidates(SPEC, range(150), prompts("0.95", "0.0"))
    copy_bound = _candidates(SPEC, range(150), prompts("0.0", "0.95"))
    assert _share(vector_bound, fuses) > _share(copy_bound, fuses)


def test_going_past_l2_is_hardly_tried_where_all_data_fit_it():
    weights = {}
    for moved_bytes in (2**20, 2**30):
        evidence = evidence_of(f"gm_to_ub_bytes={moved_bytes}, ub_to_gm_bytes=64")
        sites = [Site("x", (Choice("no L2", (), forward=True),))]
        weights[moved_bytes] = evidence.option_weight(
            next(rule for rule in RULES if rule.name == "l2_bypass"), sites
        )
    assert weights[2**20] < 0.1 * weights[2**30]


def test_a_shortage_of_ub_calls_for_smaller_tiles():
    shortage = (
        "\n- [run_kernel] op_kernel/toy.cpp:3: InitBuffer: unified buffer overflow: 9 bytes asked for\n"
    )
    messages = _messages()
    short = [messages[0], Message("user", messages[1].content + shortage)]

    def grows(candidate):
        return any(f"TILE_LENGTH = {size};" in candidate.tiling_text for size in (2048, 4096, 8192))

    assert _share(_candidates(SPEC, range(60)), grows) > 0.3
    assert _share(_candidates(SPEC, range(60), short), grows) < 0.15


@pytest.mark.slow
@pytest.mark.parametrize("spec", list_operators()[::3], ids=lambda spec: spec.name)
def test_every_built_in_operator_gets_different_sensible_candidates(spec):
    device_free = FakeEvaluator()
    device_free.submit(request_for(SPEC, SPEC.baseline, MeasureProtocol()))
    messages = _messages(spec, device_free.poll(0)[0][1])
    candidates = _candidates(spec, range(20), messages)
    usable = [candidate for candidate in candidates if isinstance(candidate, Candidate)]
    assert len(usable) >= 18
    on_vector_cores = "BUFFER_NUM" in spec.baseline.kernel_text
    assert len({candidate.digest for candidate in usable}) >= (8 if on_vector_cores else 3)
    for candidate in usable:
        for side, base in ((candidate.host, spec.baseline.host), (candidate.kernel, spec.baseline.kernel)):
            assert [file.path for file in side.files] == [file.path for file in base.files]
            assert side.main_text.count("{") == side.main_text.count("}")


def test_data_types_that_stand_in_the_system_message_are_heeded():
    own = load_operator("exp")
    larger = own.baseline.tiling_text.replace("TILE_LENGTH = 1024", "TILE_LENGTH = 8192")
    spec = own.model_copy(update={"baseline": own.baseline.rewritten(tiling=larger)})
    cases = "\n".join(describe_case(case) for case in spec.cases)
    messages = [
        Message("system", cases),
        Message("user", f"# Task: rewrite\n\n{render_sources(spec.baseline)}"),
    ]
    candidates = _candidates(spec, range(30), messages)
    sizes_bytes = {tensor.dtype.bits // 8 for case in spec.cases for tensor in case.inputs}
    assert sizes_bytes == {2, 4}
    assert UB_BYTES // 2 < ub_bytes(spec.baseline, 4) <= UB_BYTES
    room = UbRoom(tuple(sizes_bytes))
    assert all(fits_ub(candidate, spec.baseline, room) for candidate in candidates)


def test_files_that_operators_share_are_read_and_rewritten():
    """As in the foreach family, whose own files only name what shared ones do."""
    shared = {
        "shared/inc/op_tiling/tiling.h": "constexpr uint32_t TILE_LENGTH = 1024;\n",
        "op_host/each.cpp": "// registers\n",
        "op_kernel/each.cpp": "// enters\n",
        "shared/inc/op_kernel/base.h": SPEC.baseline.kernel_text,
    }
    prompt = "# Task: rewrite\n" + "".join(
        f"### FILE: {path}\n```cpp\n{text}```\n" for path, text in shared.items()
    )
    read = candidate_in(prompt)
    assert [file.path for file in read.kernel.files] == ["op_kernel/each.cpp", "shared/inc/op_kernel/base.h"]
    assert (read.host.main, read.kernel.main) == ("op_host/each.cpp", "op_kernel/each.cpp")
    texts = [
        OfflineModel().complete([Message("user", prompt)], seed=seed, max_tokens=9999, deadline_s=1).text
        for seed in range(4)
    ]
    assert all(isinstance(candidate_from_answer(text, read), Candidate) for text in texts)


def test_a_prompt_without_one_side_holds_no_operator():
    assert candidate_in("### FILE: shared/op_kernel/base.h\n```cpp\nint x;\n```\n") is None
    assert candidate_in("### FILE: op_host/x.cpp\n```cpp\nint x;\n```\n") is None
