"""What a candidate that passed has to pass again before its result is final.

Every candidate runs its smallest case once more on other values, at other addresses, over other garbage: what
it remembers, reads before writing or takes from an address differs there. One that is faster than all that
was measured before it (a champion) does so on every case, and each of its latencies is measured again by a
fresh process. So is a latency below the floor of its case, which no kernel can reach. The case, the values
and the turns follow from operator, candidate and seed. A price is that of the first run, unless the second
measurement is slower by more than chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ascend_gym.core.digest import digest_of
from ascend_gym.core.records import CaseResult, Diagnostic, EvalRequest, Phase
from ascend_gym.core.status import Status
from npu_daemon.case_runner import CaseRunner, PassedCase

FRESH_SEEDS = 4
_OTHER_VALUES, _SAME_VALUES = 1, 2


def second_look(
    runner: CaseRunner, *, champion: bool, on_case: Callable[[], None] = lambda: None
) -> list[CaseResult]:
    """Return the results of the cases that ``runner`` passed, up to the first that is refused after all.

    Args:
        runner: has taken every case of its request.
        champion: whether the candidate is faster than all before it.
        on_case: called before each run, as a sign of progress.
    """
    smallest = min(runner.passed, key=lambda each: each.case.traffic_bytes)
    results: list[CaseResult] = []
    for passed in runner.passed:
        refused = None
        if champion or passed is smallest:
            on_case()
            refused = _refused_on_other_values(runner, passed)
        if refused is None and (champion or _below_floor(runner, passed.result)):
            on_case()
            results.append(_measured_again(runner, passed))
        else:
            results.append(refused or passed.result)
        if results[-1].status is not Status.OK:
            break
    return results


def fresh_seed(request: EvalRequest) -> int:
    """Return the seed of the other values: one of ``FRESH_SEEDS``, by the candidate."""
    protocol = request.protocol
    number = int(digest_of("values", request.candidate.digest, protocol.input_seed)[:8], 16) % FRESH_SEEDS
    return int(digest_of("fresh seed", protocol.input_seed, number)[:15], 16)


def _refused_on_other_values(runner: CaseRunner, passed: PassedCase) -> CaseResult | None:
    data = runner.data(passed.case, fresh_seed(runner.request))
    refused = runner.refusal(passed.case, passed.built, data, _OTHER_VALUES)
    return refused and _told(refused, "passed once, but not with other values at other addresses")


def _measured_again(runner: CaseRunner, passed: PassedCase) -> CaseResult:
    """Measure once more in a fresh process: what is slower by more than chance, counts."""
    again = runner.launch(passed.case, passed.built, passed.data, _SAME_VALUES)
    if again.status is not Status.OK:
        return _told(again, "passed once, but not when it was measured again")
    settled = _settled(passed.result, again, runner.backend.repeatability(runner.protocol))
    return _suspicious(settled) if _below_floor(runner, settled) else settled


def _settled(first: CaseResult, again: CaseResult, repeatability: float) -> CaseResult:
    first_us, again_us = _latencies_us(first, again)
    if abs(first_us - again_us) <= repeatability * min(first_us, again_us):
        return first
    message = (
        f"measured twice, {first_us:g} us and {again_us:g} us: the slower one counts. "
        "Does the kernel depend on addresses or on memory that nothing was written to?"
    )
    note = Diagnostic(phase=Phase.PRICE, message=message)
    slower = again if again_us > first_us else first
    return slower.model_copy(update={"diagnostics": (*slower.diagnostics, note)})


def _below_floor(runner: CaseRunner, result: CaseResult) -> bool:
    (latency_us,) = _latencies_us(result)
    chance = runner.backend.repeatability(runner.protocol)
    return result.floor_us is not None and latency_us < result.floor_us * (1.0 - chance)


def _suspicious(result: CaseResult) -> CaseResult:
    """Refuse a latency that was measured twice and cannot be."""
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
    """Return the latencies of results that are ok."""
    return [result.latency_us for result in results if result.latency_us is not None]


def _told(result: CaseResult, when: str) -> CaseResult:
    first, *others = result.diagnostics
    first = first.model_copy(update={"message": f"{when}: {first.message}"})
    return result.model_copy(update={"diagnostics": (first, *others)})
