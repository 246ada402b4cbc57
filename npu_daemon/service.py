"""Evaluation of a request: operator, earlier result, pipeline, result store."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Backend
from ascend_gym.core.records import DeviceInfo, EvalRequest, EvalResult
from ascend_gym.core.status import Blame, Status, rule_of
from npu_daemon.cache_folder import (
    DEFAULT_LIMIT_BYTES,
    INPUTS_FOLDER,
    RESULTS_NAME,
    RESULTS_SHARE,
    make_room,
)
from npu_daemon.case_data import CaseDataCache
from npu_daemon.case_runner import DeviceGate
from npu_daemon.harness import harness_identity, harness_text
from npu_daemon.operators import OperatorCatalog, TrustedReferences, noted
from npu_daemon.own_files import OWN_FILES
from npu_daemon.own_programs import NOT_STARTED
from npu_daemon.pipeline import evaluate, infra_error, invalid_request
from npu_daemon.sandbox import CONFINING
from npu_daemon.settings import RequestLimits
from npu_daemon.store import SqliteResultStore

_ATTEMPTS = 3  # of an evaluation whose builds or values were damaged meanwhile
# What a damaged file can look like, whoever wrote the message: it only has us look at our files once more.
_MAY_BE_OURS = re.compile(
    r"shared librar|shared object|file too short|ELF|undefined symbol|No such file|cannot open"
    r"|exit status 12[67]|signal|SIG|read-only|removed while in use|unreadable|readable report"
)
# A full disk, a changed input, or a process of the build or the run that was killed by somebody else: tried
# again, too. If the same is said every time, it is the candidate that does it.
_FROM_OUTSIDE = re.compile(
    r"[Nn]o space left|disk is full|ENOSPC|SIGKILL|[Ss]ignal 9\b|exit status 137|\bKilled\b|due to signal"
    r"|the run changed .*, which is read-only"
)
# No candidate is blamed for these while a program of ours does not start, or a file of ours is missing.
_CANNOT_START = re.compile(
    rf"{NOT_STARTED.pattern}|exit status 12[67]|shared object"
    r"|file not found|No such file|Permission denied|cannot open|could not run"
)
_FULL_BELOW_BYTES = 32 * 2**20
_MAKE_ROOM_EVERY = 50  # evaluations, each of which may add builds; inputs are larger, and looked at each time


def result_key(request: EvalRequest, device: DeviceInfo) -> str:
    """Return the digest of everything that affects the result of ``request`` on ``device``."""
    return digest_of(
        "result", request.digest, device.backend, device.chip, device.toolchain_digest, harness_identity()
    )


def question_key(request: EvalRequest, device: DeviceInfo) -> str:
    """Return the digest of the question that candidates compete on: ``result_key`` without the candidate."""
    return digest_of(
        "question",
        request.folder_digest,
        request.case_ids,
        request.protocol,
        device.backend,
        device.chip,
        device.toolchain_digest,
        harness_identity(),
    )


class EvaluationService:
    """Answers requests with one backend, from the store if possible.

    Args:
        backend: builds, runs and prices.
        case_data: caches inputs and expected outputs.
        store: stores results.
        catalog: resolves operators.
        limits: limits of requests.
        make_room: called occasionally after inputs or builds were added.
        cache_dir: names of builds and values in the store are relative to it.
    """

    def __init__(
        self,
        backend: Backend,
        case_data: CaseDataCache,
        store: SqliteResultStore,
        catalog: OperatorCatalog | None = None,
        limits: RequestLimits | None = None,
        make_room: Callable[[], None] = lambda: None,
        cache_dir: Path = Path("/"),
    ) -> None:
        self._cache_dir = cache_dir.resolve()
        self._make_room, self._evaluations, self._generated = make_room, 0, 0
        self._backend = backend
        self._case_data = case_data
        self._store = store
        self._catalog = catalog or OperatorCatalog()
        self._limits = limits or RequestLimits()

    def describe(self) -> DeviceInfo:
        """Return the device that measures."""
        return self._with_harness(self._backend.describe())

    def _with_harness(self, device: DeviceInfo) -> DeviceInfo:
        return device.model_copy(update={"harness": harness_text()})

    def chips(self) -> tuple[str, ...]:
        """Return the supported chips."""
        return self._backend.chips()

    def answer(
        self,
        request: EvalRequest,
        on_case: Callable[[], None] = lambda: None,
        device: DeviceGate = nullcontext,
    ) -> EvalResult:
        """Return the stored result of an equal request if that is allowed, else evaluate and store.

        Args:
            request: request.
            on_case: called before each case, as a sign of progress.
            device: see ``evaluate``.
        """
        key = result_key(request, self.describe())
        stored = self._store.get(key) if request.use_cache else None
        if stored is not None:
            return stored
        try:
            self._limits.check(request.protocol)
            spec, oracle = self._catalog.resolve(request)
        except MisuseError as error:
            return invalid_request(request, str(error))
        question = question_key(request, self.describe())
        best_us = self._store.best_us(question)
        result, used = self._undamaged(
            request,
            lambda: evaluate(request, spec, self._backend, oracle, self._case_data, device, best_us, on_case),
        )
        generated = self._case_data.generated  # by this evaluation, or ahead of it
        if generated > self._generated or self._evaluations % _MAKE_ROOM_EVERY == 0:
            self._make_room()
        self._generated = generated
        self._evaluations += 1
        if request.given is not None:
            result = noted(result)
        if result.device is not None:
            result = result.model_copy(update={"device": self._with_harness(result.device)})
        self._store.put(key, result, used)
        if result.latency_us is not None:
            self._store.note_latency(question, result.latency_us)
        return result

    def _undamaged(
        self, request: EvalRequest, evaluated: Callable[[], EvalResult]
    ) -> tuple[EvalResult, list[str]]:
        """Return a result with the names of the folders that it came from, which are as they were written.

        A result of damaged files says nothing about the candidate: they are made again and it is repeated.
        Neither does a failure on a full disk, or the death of a process that nothing of ours has killed. If a
        program of this host does not start, the result is ``infra_error``.
        """
        for _ in range(_ATTEMPTS):
            with OWN_FILES.recording() as used:
                result = evaluated()
            deep = any(_MAY_BE_OURS.search(each.message) for each in result.all_diagnostics)
            damaged = OWN_FILES.damaged(used, deep=deep)
            confined = self._backend.describe().sandbox in CONFINING
            full = self._full_disk() if result.status is not Status.OK else ""
            told = any(_FROM_OUTSIDE.search(each.message) for each in result.all_diagnostics)
            ours = damaged and (confined or result.status is not Status.GUARD_REJECTED)
            if not ours and not full and not told:
                break
        else:
            if ours:
                listing = ", ".join(f"{folder}: {problem}" for folder, problem in damaged.items())
                message = f"files of the cache were damaged in each of {_ATTEMPTS} attempts: {listing}"
                result = infra_error(request, message)
            elif full:
                result = infra_error(request, f"there was no room in {full} in any of {_ATTEMPTS} attempts")
        blamed = rule_of(result.status).blame in (Blame.CANDIDATE, Blame.SIMULATOR)
        if blamed and any(_CANNOT_START.search(each.message) for each in result.all_diagnostics):
            trouble = self._backend.trouble()
            if trouble is not None:
                result = infra_error(request, trouble)
        self._store.note_repairs(OWN_FILES.take_repaired())
        return result, [os.path.relpath(folder.resolve(), self._cache_dir) for folder in used]

    def _full_disk(self) -> str:
        """Return the folder without room that an evaluation writes to; empty if there is none."""
        folders = (str(self._cache_dir), tempfile.gettempdir())
        return next((each for each in folders if shutil.disk_usage(each).free < _FULL_BELOW_BYTES), "")

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def result_store(cache_dir: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> SqliteResultStore:
    """Open the result store of a cache with the total limit ``limit_bytes``."""
    return SqliteResultStore(cache_dir / RESULTS_NAME, limit_bytes // RESULTS_SHARE)


def open_service(
    backend: Backend,
    cache_dir: Path,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
    trusted: TrustedReferences | None = None,
    limits: RequestLimits | None = None,
) -> EvaluationService:
    """Return a service that keeps its data below ``cache_dir``.

    Args:
        backend: builds, runs and prices.
        cache_dir: cache folder; may be shared with other services.
        limit_bytes: limit of inputs, expected outputs, builds and results together.
        trusted: clients' own operators whose references may be executed; ``None`` for all.
        limits: limits of requests.
    """
    case_data = CaseDataCache(cache_dir / INPUTS_FOLDER, harness_identity())
    return EvaluationService(
        backend,
        case_data,
        result_store(cache_dir, limit_bytes),
        OperatorCatalog(trusted),
        limits,
        partial(make_room, cache_dir, limit_bytes),
        cache_dir,
    )
