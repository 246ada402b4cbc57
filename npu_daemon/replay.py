"""Recorded results in place of evaluations, for offline research and exact re-analysis."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path

from pydantic import ValidationError

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import DeviceInfo, EvalRequest, EvalResult
from npu_daemon.case_runner import DeviceGate
from npu_daemon.pipeline import invalid_request
from npu_daemon.store import recorded_results


class ReplayService:
    """Answers requests from a result store of another daemon (``results.sqlite`` in its cache).

    The answers are the recorded ones bit for bit, including charges and phase times. A request that was never
    evaluated ends as ``invalid_request``: this says nothing about the candidate, and retrying does not
    help.

    Args:
        recording: result store.
        chip: chip that the daemon reports by default.

    Raises:
        MisuseError: it is not a result store, has no results, or results of different simulators or devices.
    """

    def __init__(self, recording: Path, chip: str) -> None:
        self._recording = recording
        self._results = _by_request(recording)
        self._device = _common_device(recording, self._results).model_copy(update={"chip": chip})

    def describe(self) -> DeviceInfo:
        """Return the device that measured the recorded results."""
        return self._device.model_copy(update={"backend": f"replay of {self._device.backend}"})

    def chips(self) -> tuple[str, ...]:
        """Return all chips: the chip is part of each request, so any may be requested."""
        chips = {result.device.chip for result in self._results.values() if result.device}
        return tuple(sorted({*chips, self._device.chip}))

    def answer(
        self,
        request: EvalRequest,
        on_case: Callable[[], None] = lambda: None,
        device: DeviceGate = nullcontext,
    ) -> EvalResult:
        """Return the recorded result of an equal request."""
        recorded = self._results.get(request.digest)
        if recorded is None:
            return invalid_request(
                request,
                f"{self._recording} has no result of this request; evaluate it once with a daemon that can",
            )
        return recorded

    def close(self) -> None:
        """Do nothing; no resources are held."""


def _by_request(recording: Path) -> dict[str, EvalResult]:
    if not recording.is_file():
        raise MisuseError(f"there is no recording {recording}: give the results.sqlite of a daemon's cache")
    try:
        with closing(sqlite3.connect(f"file:{recording}?mode=ro", uri=True)) as database:
            results = [EvalResult.model_validate_json(text) for text in recorded_results(database)]
    except (sqlite3.Error, ValidationError) as error:
        raise MisuseError(f"{recording} is not a result store of this version: {error}") from error
    if not results:
        raise MisuseError(f"{recording} holds no results")
    return {result.request_digest: result for result in results}  # the newest of each is the last


def _common_device(recording: Path, results: dict[str, EvalResult]) -> DeviceInfo:
    devices = [result.device for result in results.values() if result.device is not None]
    kinds = Counter((device.backend, device.toolchain_digest) for device in devices)
    if len(kinds) != 1:
        listing = ", ".join(f"{count} of {name} {digest[:12]}" for (name, digest), count in kinds.items())
        raise MisuseError(
            f"expected results of one backend and version in {recording}, got {listing or 'none at all'}"
        )
    return devices[0]
