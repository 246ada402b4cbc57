"""Generates the values of second looks beside other work, so that no candidate waits for them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from ascend_gym.core.protocols import Oracle
from ascend_gym.core.records import Case, EvalRequest, OpSpec
from npu_daemon.case_data import CaseData, CaseDataCache
from npu_daemon.pipeline import select_cases
from npu_daemon.second_look import fresh_seed, other_seeds, smallest

_Generate = Callable[[OpSpec, Oracle, Case, int], CaseData]


class ValuesAhead:
    """Has every set of other values of a question ready soon after a candidate was correct on public values.

    Candidates are run on one of ``second_look.FRESH_SEEDS`` sets. The first one has generated one of them at
    most; the others are generated, and all of them read once, beside its second look or while this process
    waits for the next request or its compiler. The secret sets that the first champion does not use follow,
    for the champions after it. What fails here fails again for the candidate that needs it, and is told then.

    Args:
        case_data: caches the values.
    """

    def __init__(self, case_data: CaseDataCache) -> None:
        self._case_data = case_data
        self._beside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="values")
        self._asked: set[tuple[str, str, int]] = set()

    def prepare(
        self, request: EvalRequest, spec: OpSpec, oracle: Oracle, *, champion: bool, confined: bool
    ) -> None:
        """Start preparing the values for candidates of the question of ``request``, unless that was done.

        Args:
            request: request whose candidate is correct on public values.
            spec: operator.
            oracle: generates inputs and computes expected outputs.
            champion: whether the candidate gets its second look on secret values.
            confined: whether runs are prevented from writing to files of values.
        """
        cases = select_cases(request, spec)
        seed, used = request.protocol.input_seed, fresh_seed(request)
        obtain = partial(self._obtain, spec, oracle, confined)
        if self._is_new(spec, "smallest", smallest(cases), seed):
            generate = partial(self._case_data.obtain, audited=False)
            for other in other_seeds(seed):
                self._beside.submit(obtain, generate, smallest(cases), other)
        for case in cases if champion else ():
            if self._is_new(spec, "secret", case, seed):
                for other in {*other_seeds(seed)} - {used}:
                    self._beside.submit(obtain, self._case_data.obtain_secret, case, other)

    def close(self) -> None:
        """Wait for the set that is being generated; start no other."""
        self._beside.shutdown(cancel_futures=True)

    def _is_new(self, spec: OpSpec, what: str, case: Case, seed: int) -> bool:
        """Whether the sets of a case have not been asked for before."""
        asked = (f"{what} {spec.folder_digest}", case.case_id, seed)
        new = asked not in self._asked
        self._asked.add(asked)
        return new

    def _obtain(
        self, spec: OpSpec, oracle: Oracle, confined: bool, generate: _Generate, case: Case, seed: int
    ) -> None:
        data = generate(spec, oracle, case, seed)
        if confined:
            self._case_data.unchanged.changed(data.files, confined=True)
