"""Searches of AscendOptimizer: a model that counts numbers up, and an evaluator that reads what they save."""

import re

from conftest import FakeEvaluator, make_spec, ok_result
from experiences import make_diff, make_experience

from agents.ascend_optimizer.agent import AscendOptimizer
from agents.ascend_optimizer.bank import ExperienceBank
from agents.ascend_optimizer.settings import AgentSettings
from ascend_gym.core.protocols import Completion, Message
from ascend_gym.search.driver import run_search
from ascend_gym.search.journal import Journal
from ascend_gym.search.ledger import Budget, BudgetLedger
from ascend_gym.search.llm.offline import OfflineModel
from ascend_gym.search.model_client import ModelClient

TILING = """\
constexpr uint32_t TILE_LENGTH = 1024;
static ge::graphStatus TilingFunc(gert::TilingContext* context)
{
    int tiling = 0;
}
"""
SPEC = make_spec(tiling=TILING, kernel="int kernel = 0;\n")
BANK = ExperienceBank(
    make_experience(motif=motif, code_diff=make_diff(f"    {motif}();"), bottleneck=f"{motif} symptom")
    for motif in ("one", "two", "three", "four")
)


class NumberedModel:
    """Counts ``tiling`` or ``kernel`` up in its answers, and keeps what it was asked.

    Args:
        comments: comment on the line of each mutated or refined number, by that number.
        answers: answers to give instead, by the number.
    """

    def __init__(self, comments=None, answers=None):
        self.comments, self.answers = comments or {}, answers or {}
        self.tasks, self.prompts, self.number = [], [], 0

    def complete(self, messages, *, seed, max_tokens, deadline_s):
        prompt = messages[-1].content
        if prompt.startswith("Your answer could not be used"):
            return Completion(messages[-2].content, 10, 5, "numbered")
        task = re.match(r"# Task: ([\w-]+)\n", prompt)[1]
        self.tasks.append(task)
        self.prompts.append(prompt)
        return Completion(self._answer(task, prompt), 10, 5, "numbered")

    def _answer(self, task, prompt):
        if task == "template":
            return (
                OfflineModel().complete([Message("user", prompt)], seed=0, max_tokens=9999, deadline_s=1).text
            )
        if task == "diagnose":
            return "Bottleneck: three symptom\nApplicability: loops"
        self.number += 1
        if self.number in self.answers:
            return self.answers[self.number]
        word, side = ("tiling", "host") if task == "mutate-tiling" else ("kernel", "kernel")
        old = re.search(rf"^ *int {word} = .*$", prompt, re.MULTILINE)[0]
        comment = self.comments.get(self.number, "")
        new = f"    int {word} = {self.number};{comment}"
        return f"### FILE: op_{side}/toy.cpp\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


class SavingEvaluator(FakeEvaluator):
    """Takes off 100 us what the marks ``// saves: 7`` of both sides say."""

    def _answer(self, number, request):
        text = request.candidate.tiling_text + request.candidate.kernel_text
        if "status" in text:
            return super()._answer(number, request)
        saved = sum(float(value) for value in re.findall(r"// saves: ([\d.]+)", text))
        return ok_result(request, 100.0 - saved)


def agent_of(llm, seed=0, retriever=None, **settings):
    model_client = ModelClient(llm, seed=seed)
    return AscendOptimizer(
        SPEC,
        online=model_client,
        offline=model_client,
        retriever=retriever,
        settings=AgentSettings(**settings),
    )


def search(folder, llm, *, budget, evaluator=None, in_flight=1, retriever=None, spec=SPEC, **settings):
    with Journal(folder) as journal:
        return run_search(
            spec,
            agent_of(llm, retriever=retriever, **settings),
            evaluator or SavingEvaluator(),
            BudgetLedger(Budget(budget)),
            journal,
            in_flight=in_flight,
        )


def stages(outcome):
    return [
        (step.proposal.origin["stage"], step.proposal.origin["round"], step.proposal.origin["step"])
        for step in outcome.history[1:]
    ]
