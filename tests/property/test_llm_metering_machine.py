"""However calls end and whatever endpoints report, the accounts are exact and within the budget."""

from hypothesis import given
from hypothesis import strategies as st

from ascend_gym.core.errors import BudgetExceededError, ModelError
from ascend_gym.core.protocols import Completion, Message
from ascend_gym.search.ledger import Budget, BudgetLedger, Cost
from ascend_gym.search.llm.limits import estimated_text_tokens, estimated_tokens
from ascend_gym.search.llm.metering import MeteredLlm

MESSAGES = [Message("user", "hello")]
BOUND = estimated_tokens(MESSAGES)

reports = st.one_of(
    st.none(),
    st.builds(
        Completion,
        text=st.text(max_size=8),
        prompt_tokens=st.integers(0, 2 * BOUND),
        completion_tokens=st.integers(0, 100),
        model=st.just("m"),
        recorded=st.booleans(),
    ),
)


class Reporter:
    """Answers as the list says; ``None`` is a failure."""

    def __init__(self, answers):
        self.answers = iter(answers)

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        answer = next(self.answers)
        if answer is None:
            raise ModelError("failed")
        return answer


def _tokens(answer):
    if answer is None or answer.recorded:
        return 0
    return (answer.prompt_tokens or BOUND) + (answer.completion_tokens or estimated_text_tokens(answer.text))


@given(st.integers(0, 600), st.lists(reports, min_size=1, max_size=12))
def test_the_accounts_are_exact_and_within_the_budget(budget_tokens, answers):
    ledger = BudgetLedger(Budget(0, tokens=budget_tokens))
    llm = MeteredLlm(Reporter(answers), ledger)
    expected = 0
    for answer in answers:
        covered = expected + BOUND + 40 <= budget_tokens
        try:
            llm.complete(MESSAGES, seed=1, max_tokens=40, deadline_s=1.0)
        except ModelError:
            assert covered
            assert answer is None
        except BudgetExceededError:
            if covered:  # the call was made and took more than there was
                assert expected + _tokens(answer) > budget_tokens
                expected += BOUND + 40
            break
        else:
            assert covered
            expected += _tokens(answer)
        assert ledger.spent == Cost(tokens=expected)
    assert ledger.spent == Cost(tokens=expected)
    assert expected <= budget_tokens
    assert ledger.reserved == Cost()
