"""Generates the values of second looks between evaluations, so that no candidate waits for them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from ascend_gym.core.protocols import Oracle
from ascend_gym.core.records import Case, EvalRequest, OpSpec
from npu_daemon.case_data import CaseDataCache
from npu_daemon.pipeline import select_cases
from npu_daemon.second_look import other_seeds, smallest


class ValuesAhead:
    """Has every set of other values of a question ready soon after its first correct candidate.

    Candidates are run on one of ``second_look.FRESH_SEEDS`` sets. The first one has generated one of them at
    most; the others are generated, and all of them read once, while this process waits for the next request
    or its compiler. What fails here fails again for the candidate that needs it, and is told then.

    Args:
        case_data: caches the values.
    """

    def __init__(self, case_data: CaseDataCache) -> None:
        self._case_data = case_data
        self._beside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="values")
        self._asked: set[tuple[str, str, int]] = set()

    def prepare(self, request: EvalRequest, spec: OpSpec, oracle: Oracle, *, confined: bool) -> None:
        """Start preparing the values for candidates of the question of ``request``, unless that was done.

        Args:
            request: request whose candidate passed.
            spec: operator.
            oracle: generates inputs and computes expected outputs.
            confined: whether runs are prevented from writing to files of values.
        """
        case = smallest(select_cases(request, spec))
        seed = request.protocol.input_seed
        question = (spec.folder_digest, case.case_id, seed)
        if question in self._asked:
            return
        self._asked.add(question)
        for other in other_seeds(seed):
            self._beside.submit(self._obtain, spec, oracle, case, other, confined)

    def _obtain(self, spec: OpSpec, oracle: Oracle, case: Case, seed: int, confined: bool) -> None:
        data = self._case_data.obtain(spec, oracle, case, seed, audited=False)
        if confined:
            self._case_data.unchanged.changed(data.files, confined=True)

    def close(self) -> None:
        """Wait for the set that is being generated; start no other."""
        self._beside.shutdown(cancel_futures=True)
