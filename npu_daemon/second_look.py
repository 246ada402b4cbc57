"""Second looks: further runs that a candidate must pass before its result is final.

Every candidate runs its smallest case once more with other values, other addresses and other garbage in
uninitialised memory. This exposes candidates that remember values, read before they write, or depend on
addresses. The case, the values and the rerun are determined by operator, candidate and seed.

A champion is a candidate that is faster than all earlier ones, or the first one that is not the operator's
own sources. It repeats every case on values derived from a secret of this daemon, which nobody can have
known, and is measured on them. Each of its latencies is also measured again in a fresh process, and so is any
latency below the floor of its case, which no kernel can reach. The price is that of the first run, unless one
of the others is slower by more than chance.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Built
from ascend_gym.core.records import Case, CaseResult, Diagnostic, EvalRequest, Phase
from ascend_gym.core.status import Status
from npu_daemon.case_runner import CaseRunner, PassedCase
from npu_daemon.processors import WhenIdle

# Sets of other values. Whoever knows the code knows them all: it is secret values that tell a candidate which
# recognises values. With a second set, one that was fitted to messages about the first does not always pass.
FRESH_SEEDS = 2
_OTHER_VALUES, _SAME_VALUES = 1, 2
_NOT_ON_OTHER_VALUES = "passed once, but not with other values at other addresses"
SECRET_NAME = "second_look.secret"
_SECRET_BYTES = 32


def obtain_secret(folder: Path) -> bytes:
    """Return the secret of a folder, creating it with mode 600 if necessary; safe for concurrent processes.

    Raises:
        InfrastructureError: other users can read it, or it is not a valid secret.
    """
    path = folder / SECRET_NAME
    if not path.exists():
        _make(path)
    with path.open("rb") as file:
        mode, secret = os.fstat(file.fileno()).st_mode, file.read(_SECRET_BYTES + 1)
    if mode & 0o077 or len(secret) != _SECRET_BYTES:
        raise InfrastructureError(
            f"{path}: expected {_SECRET_BYTES} bytes that only their owner can read; "
            "remove it to have it made anew"
        )
    return secret


def _make(path: Path) -> None:
    """Write a new secret, unless another process was first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(prefix=f"{SECRET_NAME}-", dir=path.parent)  # for its owner only
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_SECRET_BYTES))
        os.link(scratch, path)
    except FileExistsError:
        return
    finally:
        os.unlink(scratch)


class OtherValues:
    """The run of a candidate on other values of its smallest case, beside work on its last case.

    The values are generated while the candidate is built. If ``CaseRunner.may_overlap`` allows it, it runs on
    them beside its last case as soon as a processor is idle, at the latest while that case is judged and
    priced. Leaving the context waits for a run that has begun, but not for the generation of values, which a
    failed candidate does not need.

    Args:
        runner: evaluates the cases of the request.
        cases: cases of the request.
        expected: whether the run will be needed if all cases pass; not for a candidate that can only be a
            champion.
    """

    def __init__(self, runner: CaseRunner, cases: Sequence[Case], *, expected: bool) -> None:
        self._runner, self._last = runner, cases[-1]
        self._smallest = smallest(cases)
        self._seed = fresh_seed(runner.request)
        self._beside = ThreadPoolExecutor(max_workers=1)
        self._early = expected and runner.may_overlap
        self._refused: WhenIdle[CaseResult | None] | None = None
        self._beside.submit(runner.other_data, self._smallest, self._seed)

    def note_build(self, case: Case, built: Built) -> None:
        """Have the run begin when a processor is idle if ``case``, which runs next, is the last one.

        Args:
            case: case of the request.
            built: build of the candidate for it.
        """
        if case is self._last and self._early:
            earlier = [passed.built for passed in self._runner.passed if passed.case is self._smallest]
            self._refused = WhenIdle(self._beside, partial(self._run, (*earlier, built)[0]))

    def note_run(self, case: Case, built: Built) -> None:
        """Have the run begin now, unless it has, if ``case``, whose first run has finished, is the last one.

        Args:
            case: case of the request.
            built: build of the candidate for it.
        """
        if case is self._last and self._refused is not None:
            self._refused.begin()

    def refused(self, passed: PassedCase) -> CaseResult | None:
        """Return the failure of the run, or ``None``.

        Args:
            passed: the smallest case.
        """
        return self._run(passed.built) if self._refused is None else self._refused.result()

    def wait(self) -> None:
        """Wait until no run is active.

        Raises:
            InfrastructureError: the run failed because of this host.
        """
        if self._refused is not None:
            self._refused.result()

    def _run(self, built: Built) -> CaseResult | None:
        data = self._runner.other_data(self._smallest, self._seed)
        return self._runner.refusal(self._smallest, built, data, _OTHER_VALUES)

    def __enter__(self) -> OtherValues:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._refused is not None:
            self._refused.drop()
        self._beside.shutdown(wait=False, cancel_futures=True)


def second_look(
    runner: CaseRunner, others: OtherValues, *, champion: bool, on_case: Callable[[], None] = lambda: None
) -> list[CaseResult]:
    """Return the final results of the cases that ``runner`` passed, up to the first one that is refused.

    Args:
        runner: has evaluated every case of its request.
        others: the run on other values, which may still be in progress.
        champion: whether the candidate is faster than all before it.
        on_case: called before each run, as a sign of progress.
    """
    repeated = smallest([passed.case for passed in runner.passed])
    results: list[CaseResult] = []
    others.wait()  # a device runs one program at a time
    for passed in runner.passed:
        if champion:
            results.append(_champion_result(runner, passed, on_case))
        else:
            results.append(_result(runner, passed, on_case, others if passed.case is repeated else None))
        if results[-1].status is not Status.OK:
            break
    return results


def smallest(cases: Sequence[Case]) -> Case:
    """Return the case that every candidate is run on again, with other values."""
    return min(cases, key=lambda case: case.traffic_bytes)


def fresh_seed(request: EvalRequest) -> int:
    """Return the seed of the other values: one of ``FRESH_SEEDS``, determined by the candidate."""
    seed = request.protocol.input_seed
    return other_seeds(seed)[int(digest_of("values", request.candidate.digest, seed)[:8], 16) % FRESH_SEEDS]


def other_seeds(input_seed: int) -> tuple[int, ...]:
    """Return the seeds of all sets of other values of a protocol with this seed."""
    return tuple(int(digest_of("fresh seed", input_seed, number)[:15], 16) for number in range(FRESH_SEEDS))


def _result(
    runner: CaseRunner, passed: PassedCase, on_case: Callable[[], None], others: OtherValues | None
) -> CaseResult:
    """Return the final result of a case of an ordinary candidate."""
    if others is not None:
        on_case()
        refused = others.refused(passed)
        if refused is not None:
            return _told(refused, _NOT_ON_OTHER_VALUES)
    if not _below_floor(runner, passed.result):
        return passed.result
    on_case()
    return _settled(runner, passed.result, _measured_again(runner, passed))


def _champion_result(runner: CaseRunner, passed: PassedCase, on_case: Callable[[], None]) -> CaseResult:
    """Return the final result of a case of a champion."""
    on_case()
    data = runner.secret_data(passed.case, fresh_seed(runner.request))
    unknown = runner.launch(passed.case, passed.built, data, _OTHER_VALUES)
    if unknown.status is not Status.OK:
        return _told(unknown, _NOT_ON_OTHER_VALUES)
    on_case()
    again = _measured_again(runner, passed)
    settled = _settled(runner, passed.result, again)
    if settled.status is not Status.OK or not _differ(runner, again, unknown):
        return settled
    return _slower_values(settled, again, unknown)


def _measured_again(runner: CaseRunner, passed: PassedCase) -> CaseResult:
    """Measure a case once more in a fresh process."""
    again = runner.launch(passed.case, passed.built, passed.data, _SAME_VALUES)
    if again.status is not Status.OK:
        return _told(again, "passed once, but not when it was measured again")
    return again


def _settled(runner: CaseRunner, first: CaseResult, again: CaseResult) -> CaseResult:
    """Return which of two measurements on the same values counts: the slower one, if more than chance."""
    if again.status is not Status.OK:
        return again
    settled = _slower(first, again) if _differ(runner, first, again) else first
    return _suspicious(settled) if _below_floor(runner, settled) else settled


def _differ(runner: CaseRunner, *results: CaseResult) -> bool:
    """Return whether two latencies differ by more than chance."""
    low_us, high_us = sorted(_latencies_us(*results))
    return high_us - low_us > runner.backend.repeatability(runner.protocol) * low_us


def _slower(first: CaseResult, again: CaseResult) -> CaseResult:
    first_us, again_us = _latencies_us(first, again)
    message = (
        f"measured twice, {first_us:g} us and {again_us:g} us: the slower one counts. "
        "Does the kernel depend on addresses or on memory that nothing was written to?"
    )
    return _noted(again if again_us > first_us else first, message)


def _slower_values(settled: CaseResult, public: CaseResult, unknown: CaseResult) -> CaseResult:
    """Return the result of a kernel that does more work for some values than for others."""
    settled_us, public_us, unknown_us = _latencies_us(settled, public, unknown)
    message = (
        f"work depends on values: {public_us:g} us on public, {unknown_us:g} us on secret values; "
        "the slower one counts"
    )
    return _noted(unknown if unknown_us > settled_us else settled, message)


def _noted(result: CaseResult, message: str) -> CaseResult:
    note = Diagnostic(phase=Phase.PRICE, message=message)
    return result.model_copy(update={"diagnostics": (*result.diagnostics, note)})


def _below_floor(runner: CaseRunner, result: CaseResult) -> bool:
    (latency_us,) = _latencies_us(result)
    chance = runner.backend.repeatability(runner.protocol)
    return result.floor_us is not None and latency_us < result.floor_us * (1.0 - chance)


def _suspicious(result: CaseResult) -> CaseResult:
    """Refuse a latency that was below the floor twice."""
    (latency_us,) = _latencies_us(result)
    message = (
        f"suspicious: took {latency_us:g} us, and so it did in a fresh process, but launching and moving the "
        f"bytes of this case once takes at least {result.floor_us:g} us: the work was not done inside the "
        "measured time"
    )
    return CaseResult(
        case_id=result.case_id,
        status=Status.GUARD_REJECTED,
        accuracy=result.accuracy,
        floor_us=result.floor_us,
        diagnostics=(Diagnostic(phase=Phase.GUARD, message=message),),
    )


def _latencies_us(*results: CaseResult) -> Sequence[float]:
    """Return the latencies of the results that are ok."""
    return [result.latency_us for result in results if result.latency_us is not None]


def _told(result: CaseResult, when: str) -> CaseResult:
    first, *others = result.diagnostics
    first = first.model_copy(update={"message": f"{when}: {first.message}"})
    return result.model_copy(update={"diagnostics": (first, *others)})
