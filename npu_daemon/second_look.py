"""Second looks: what a candidate that passed its cases has to pass before its result is final.

Every candidate runs one more small case, drawn from the values that the operator has to be right for
(``ascend_gym.suite.domain``), at other addresses and with other garbage in uninitialised memory. It has no
price. It has the shapes of the request's smallest case or, where values of that are too
dear to draw for each candidate, of the operator's smallest case of the same element types. Nobody has asked
for that one: a candidate that ends with a fault there, or is not built, runs its own case again at other
addresses.

That one run shows one shape and the element types of one case. A champion (faster than all before it, or the
first that is not the operator's own sources) and a share of the other candidates, which their digest picks,
run every case of the request on values of the domain. A digest is the same on every host, so journals are,
too; who alters a text until it is not picked still cannot be a champion unseen. They run at the addresses and
over the garbage of the run with a price, and a champion is measured again at the others: no memory tells a
run with a price from one without.

A case that was measured on published values (``npu_daemon.own_values`` says which) is run by the same
candidates on values of their own, too. They must be right there, and where they are slower, that
counts: who does less for values that all know is paid as for values that nobody knew.

Each case of a champion is also measured once more in a fresh process, and so is any latency below the floor
of its case, which no kernel can reach. The slower measurement counts, unless chance explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from ascend_gym.core.digest import digest_of
from ascend_gym.core.protocols import Built, Failure
from ascend_gym.core.records import Case, CaseResult, Diagnostic, DType, EvalRequest, Phase
from ascend_gym.core.status import Status
from ascend_gym.suite.domain import domain_case, smallest_case
from npu_daemon.case_data import CaseData
from npu_daemon.case_runner import CaseRunner, PassedCase
from npu_daemon.own_values import always_drawn
from npu_daemon.processors import WhenIdle

PICKED_SHARE = 1 / 8
"""Share of ordinary candidates that get the closer look of a champion, but for the second measurement."""

_VALUES_TOLERANCE = 0.01
"""Work of honest kernels may depend a little on values, as where an index decides which line is fetched."""

_OTHER_ADDRESSES, _SAME_VALUES, _AS_PRICED = 1, 2, 3
_NOT_IN_DOMAIN = "passed its cases, but not the values of the operator's domain at other addresses"
_NOT_AT_THESE_SHAPES = (
    "passed its cases, but not the values of the operator's domain at the shapes of this case"
)
_NOT_ON_OWN_VALUES = "passed on published values, but not on values drawn for it alone"


class DomainRun:
    """The run of a candidate on values of the operator's domain, beside work on its last case.

    The values are drawn as soon as it is known what the tiling program hands on. If
    ``CaseRunner.may_overlap`` allows it, the candidate runs on them beside its last case as soon as a
    processor is idle, at the latest while that case is judged and priced. Leaving the context waits for a run
    that has begun.

    Args:
        runner: evaluates the cases of the request.
        cases: cases of the request.
        early: whether the run will be needed if all cases pass; not for a candidate that can only be a
            champion.
    """

    def __init__(self, runner: CaseRunner, cases: Sequence[Case], *, early: bool) -> None:
        spec = runner.spec
        self._runner, self._last = runner, cases[-1]
        self._smallest = base = smallest_case(cases)
        self._built: Built | None = None
        self._asked = not spec.folder or always_drawn(spec, base)
        if not self._asked:
            least = smallest_case([case for case in spec.cases if _types(case) == _types(base)])
            base = next((case for case in cases if case.case_id == least.case_id), least)
            self._asked = any(case is base for case in cases)
        self._base = base
        self.case = domain_case(spec, base) if spec.folder else base
        self._beside = ThreadPoolExecutor(max_workers=1)
        self._early = early and runner.may_overlap
        self._prepared: Future[tuple[Built | Failure, CaseData]] | None = None
        self._data: Future[CaseData] | None = None
        self._refused: WhenIdle[CaseResult | None] | None = None

    def note_launch(self, case: Case, launch: str) -> None:
        """Have the values drawn if ``case`` is the one whose shapes they have.

        Args:
            case: case of the request.
            launch: digest of what the tiling program hands on for it; see ``own_seed``.
        """
        if case is self._base and self._data is None:
            self._data = self._beside.submit(self._drawn, launch)

    def _drawn(self, launch: str) -> CaseData:
        if not self._runner.spec.folder and not always_drawn(self._runner.spec, self.case):
            return self._runner.data(self.case)  # too dear to draw for each candidate
        return self._runner.own_data(self.case, launch)

    def note_build(self, case: Case, built: Built) -> None:
        """Have the run begin when a processor is idle if ``case``, which runs next, is the last one.

        Args:
            case: case of the request.
            built: build of the candidate for it.
        """
        if case is self._smallest:
            self._built = built
        if case is self._base:
            data = self._data
            assert data is not None, "its launch is known"
            self._prepared = self._beside.submit(lambda: (built, data.result()))
        elif case is self._last and not self._asked:
            self._prepared = self._beside.submit(self._built_for_it)
        if case is self._last and self._early and self._prepared is not None:
            self._refused = WhenIdle(self._beside, self._run)

    def _built_for_it(self) -> tuple[Built | Failure, CaseData]:
        """Build the candidate for a case that the request leaves out, and draw its values."""
        launches: list[str] = []
        built = self._runner.build(self._base, launches.append)
        return built, self._drawn(launches[0] if launches else "")

    def note_run(self, case: Case, built: Built) -> None:
        """Have the run begin now, unless it has, if ``case``, whose first run has finished, is the last one.

        Args:
            case: case of the request.
            built: build of the candidate for it.
        """
        if case is self._last and self._refused is not None:
            self._refused.begin()

    def refused(self) -> CaseResult | None:
        """Return the failure of the run, or ``None``."""
        return self._run() if self._refused is None else self._refused.result()

    def wait(self) -> None:
        """Wait until no run is active.

        Raises:
            InfrastructureError: the run failed because of this host.
        """
        if self._refused is not None:
            self._refused.result()

    def _run(self) -> CaseResult | None:
        assert self._prepared is not None, "every case was built"
        built, data = self._prepared.result()
        refused = None
        if not isinstance(built, Failure):
            refused = self._runner.refusal(self.case, built, data, _OTHER_ADDRESSES)
            if refused is None:
                return None
        if not self._asked and (refused is None or refused.status is not Status.INCORRECT):
            # A case that nobody has asked for may not fit the candidate: its own case again.
            assert self._built is not None, "every case was built"
            published = self._runner.data(self._smallest)
            refused = self._runner.refusal(self._smallest, self._built, published, _OTHER_ADDRESSES)
        return None if refused is None else _told(refused, _NOT_IN_DOMAIN)

    def __enter__(self) -> DomainRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._refused is not None:
            self._refused.drop()
        self._beside.shutdown(wait=True, cancel_futures=True)
        # They refer to this: a candidate's values would stay in memory until Python looks for such rings.
        self._refused = self._prepared = self._data = None


def _types(case: Case) -> list[DType]:
    return [tensor.dtype for tensor in (*case.inputs, *case.outputs)]


def second_look(
    runner: CaseRunner, domain: DomainRun, *, champion: bool, on_case: Callable[[], None] = lambda: None
) -> list[CaseResult]:
    """Return the final results of the cases that ``runner`` passed, up to the first one that is refused.

    Args:
        runner: has evaluated every case of its request.
        domain: the run on values of the domain, which may still be in progress.
        champion: whether the candidate is faster than all before it.
        on_case: called before each run, as a sign of progress.
    """
    smallest = smallest_case([passed.case for passed in runner.passed])
    picked = champion or _share(runner.request) < PICKED_SHARE
    results: list[CaseResult] = []
    domain.wait()  # a device runs one program at a time
    for passed in runner.passed:
        on_case()
        refused = domain.refused() if passed.case is smallest else None
        if refused is not None:
            results.append(refused.model_copy(update={"case_id": smallest.case_id}))
            return results
        result = (
            _settled(runner, passed) if champion or _below_floor(runner, passed.result) else passed.result
        )
        if result.status is Status.OK and picked and not passed.has_own_values:
            on_case()
            result = _on_own_values(runner, passed, result)
        if result.status is Status.OK and picked and runner.spec.folder:
            on_case()
            result = _in_domain(runner, passed, result)
        results.append(result)
        if result.status is not Status.OK:
            break
    return results


def _share(request: EvalRequest) -> float:
    """Return a number from 0 to 1 that is spread evenly over candidates."""
    digest = digest_of("picked", request.folder_digest, request.candidate.digest)
    return int(digest[:12], 16) / 16**12


def _settled(runner: CaseRunner, passed: PassedCase) -> CaseResult:
    """Measure a case once more in a fresh process; the slower one counts, unless chance explains it."""
    again = runner.launch(passed.case, passed.built, passed.data, _SAME_VALUES)
    if again.status is not Status.OK:
        return _told(again, "passed once, but not when it was measured again")
    settled = passed.result
    if _differ(runner, passed.result, again):
        first_us, again_us = _latencies_us(passed.result, again)
        message = (
            f"measured twice, {first_us:g} us and {again_us:g} us: the slower one counts. "
            "Does the kernel depend on addresses or on memory that nothing was written to?"
        )
        note = Diagnostic(phase=Phase.PRICE, message=message)
        slower = again if again_us > first_us else passed.result
        settled = slower.model_copy(update={"diagnostics": (*slower.diagnostics, note)})
    if not _below_floor(runner, settled):
        return settled
    (latency_us,) = _latencies_us(settled)
    message = (
        f"suspicious: took {latency_us:g} us, and so it did in a fresh process, but launching and moving the "
        f"bytes of this case once takes at least {settled.floor_us:g} us: the work was not done inside the "
        "measured time"
    )
    return _guarded(settled, message)


def _in_domain(runner: CaseRunner, passed: PassedCase, result: CaseResult) -> CaseResult:
    """Return ``result`` unless the candidate is wrong on the domain at the shapes of this case."""
    case = domain_case(runner.spec, passed.case)
    data = runner.own_data(case, passed.launch)
    refused = runner.refusal(case, passed.built, data, _AS_PRICED)
    if refused is None:
        return result
    return _told(refused, _NOT_AT_THESE_SHAPES).model_copy(update={"case_id": passed.case.case_id})


def _on_own_values(runner: CaseRunner, passed: PassedCase, result: CaseResult) -> CaseResult:
    """Return ``result``, which was measured on published values, unless own values tell otherwise."""
    data = runner.own_data(passed.case, passed.launch)
    own = runner.launch(passed.case, passed.built, data, charged=False)
    if own.status is not Status.OK:
        return _told(own, _NOT_ON_OWN_VALUES)
    published_us, own_us = _latencies_us(result, own)
    if own_us <= published_us * (1.0 + _VALUES_TOLERANCE) or not _differ(runner, result, own):
        return result
    message = (
        f"took {published_us:g} us on published values and {own_us:g} us on values drawn for it alone, which "
        "counts. Where that is honest, op.toml says latency_depends_on_values = true"
    )
    return own.model_copy(
        update={"diagnostics": (*own.diagnostics, Diagnostic(phase=Phase.PRICE, message=message))}
    )


def _differ(runner: CaseRunner, *results: CaseResult) -> bool:
    """Return whether two latencies differ by more than chance."""
    low_us, high_us = sorted(_latencies_us(*results))
    return high_us - low_us > runner.backend.repeatability(runner.protocol) * low_us


def _below_floor(runner: CaseRunner, result: CaseResult) -> bool:
    (latency_us,) = _latencies_us(result)
    chance = runner.backend.repeatability(runner.protocol)
    return result.floor_us is not None and latency_us < result.floor_us * (1.0 - chance)


def _guarded(result: CaseResult, message: str) -> CaseResult:
    """Refuse a latency that was measured."""
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
