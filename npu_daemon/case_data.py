"""Inputs and expected outputs of cases, generated and audited once, and stored as raw files; their guards."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - registers bfloat16 with numpy by name
import numpy as np

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Oracle, Verdict
from ascend_gym.core.records import Case, Diagnostic, OpSpec, Phase, TensorSpec
from ascend_gym.core.remove_tree import remove_tree
from ascend_gym.suite.audit import insensitivities
from ascend_gym.suite.inputs import Array, array_bytes, stored_array, write_array
from npu_daemon.cache_folder import entry_lock
from npu_daemon.own_files import OWN_FILES, Attributes, attributes_of, file_digest

DEFAULT_LIMIT_BYTES = 256 * 2**20
Outputs = Sequence[Sequence[Array]]

_LIBC = ctypes.CDLL(None)
_LIBC.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_INDEX_NAME = "index.json"
_FORMAT = 3  # of an entry; it had no manifest before


@dataclass(frozen=True)
class GuardedFile:
    """A file that no run may change.

    Attributes:
        label: description for messages.
        path: path of the file.
        digest: ``file_digest`` of its original contents.
    """

    label: str
    path: Path
    digest: str


class UnchangedFiles:
    """Detects changes of files that no run may change.

    Confined runs cannot open such a file for writing. Then, once the bytes were read, equal attributes (which
    every write changes) imply equal bytes. Otherwise all bytes are read each time.
    """

    def __init__(self) -> None:
        self._seen: dict[Path, Attributes] = {}
        self._reading: dict[Path, threading.Lock] = {}

    def changed(self, files: Iterable[GuardedFile], *, confined: bool) -> Diagnostic | None:
        """Return a diagnostic about the first file that is missing or has changed; ``None`` if none has.

        Args:
            files: files to check.
            confined: whether the run was prevented from writing to them, and from removing them.

        Raises:
            InfrastructureError: one is missing that the run could not remove.
        """
        for file in files:
            if confined and not file.path.exists():
                raise InfrastructureError(
                    f"{file.path} ({file.label}) was removed while in use: leave the cache to its daemons"
                )
            if not self._is_unchanged(file, confined=confined):
                message = f"the run changed {file.label}, which is read-only: write nothing but the outputs"
                return Diagnostic(phase=Phase.GUARD, message=message)
        return None

    def note(self, files: Iterable[GuardedFile]) -> None:
        """Take files as they were when this process last wrote them or compared their digests."""
        for file in files:
            attributes = OWN_FILES.verified(file.path)
            if attributes is not None:
                self._seen[file.path] = attributes

    def note_written(self, files: Iterable[GuardedFile]) -> None:
        """Take files as they are now, which this process has just written."""
        for file in files:
            attributes = attributes_of(file.path)
            if attributes is not None:
                self._seen[file.path] = attributes

    def forget(self, files: Iterable[GuardedFile]) -> None:
        """Drop what is known about files."""
        for file in files:
            self._seen.pop(file.path, None)
            self._reading.pop(file.path, None)

    def _is_unchanged(self, file: GuardedFile, *, confined: bool) -> bool:
        attributes = attributes_of(file.path)
        if attributes is None:
            return False
        with self._reading.setdefault(file.path, threading.Lock()):  # two threads do not read it both
            if confined and self._seen.get(file.path) == attributes:
                return True
            if file_digest(file.path) != file.digest:
                return False
            self._seen[file.path] = attributes
        return True


@dataclass(frozen=True)
class _Accepted:
    outputs: Outputs
    verdict: Verdict

    @property
    def size_bytes(self) -> int:
        return sum(array.nbytes for arrays in self.outputs for array in arrays)


class AcceptedOutputs:
    """The last accepted outputs of recently judged cases, with their verdicts; safe for two threads.

    A verdict is a function of the bits of the outputs and the data of the case, so equal bits have the same
    verdict. Comparing bits takes a tenth of the time of judging.

    Args:
        limit_bytes: size of the cache; the outputs of the least recently judged case are dropped first.
    """

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._by_case: OrderedDict[Path, _Accepted] = OrderedDict()
        self._lock = threading.Lock()

    def verdict(self, case_data: Path, outputs: Outputs) -> Verdict | None:
        """Return the earlier verdict on equal outputs, or ``None``.

        Args:
            case_data: folder with the data of the case, whose name depends on everything that affects the
                verdict.
            outputs: arrays of each output parameter.
        """
        accepted = self._by_case.get(case_data)
        if accepted is None or not _equal(accepted.outputs, outputs):
            return None
        with self._lock:
            if case_data in self._by_case:
                self._by_case.move_to_end(case_data)
        return accepted.verdict

    def note(self, case_data: Path, outputs: Outputs, verdict: Verdict) -> None:
        """Keep correct outputs; the arrays must not be modified afterwards."""
        accepted = _Accepted(outputs, verdict)
        with self._lock:
            self._by_case.pop(case_data, None)
            if not verdict.correct or accepted.size_bytes > self._limit_bytes:
                return
            self._by_case[case_data] = accepted
            while sum(each.size_bytes for each in self._by_case.values()) > self._limit_bytes:
                self._by_case.popitem(last=False)

    def forget(self, case_data: Path) -> None:
        """Drop the outputs of a case."""
        with self._lock:
            self._by_case.pop(case_data, None)


def _equal(kept: Outputs, outputs: Outputs) -> bool:
    pairs = [list(zip(*arrays, strict=False)) for arrays in zip(kept, outputs, strict=False)]
    same_shape = [len(arrays) for arrays in kept] == [len(arrays) for arrays in outputs]
    return same_shape and all(_same_bits(*pair) for arrays in pairs for pair in arrays)


def _same_bits(one: Array, other: Array) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not (one.flags.c_contiguous and other.flags.c_contiguous):
        return False
    return bool(_LIBC.memcmp(one.ctypes.data, other.ctypes.data, one.nbytes) == 0)


@dataclass(frozen=True)
class CaseData:
    """Data of one case.

    Attributes:
        input_files: raw little-endian files of each input parameter.
        expected: expected arrays of each output parameter (memory-mapped, read-only).
        files: all files behind these, with their original digests.
        folder: folder of the files.
        insensitive: one sentence for each kind of wrong output that the verdict of this case would accept.
    """

    input_files: tuple[tuple[Path, ...], ...]
    expected: tuple[tuple[Array, ...], ...]
    files: tuple[GuardedFile, ...]
    folder: Path
    insensitive: tuple[str, ...]


class CaseDataCache:
    """A folder with the data of cases, by the digest of everything that determines them.

    Args:
        folder: folder; created if missing, may be shared by processes.
        harness: identity of the code that generates inputs and judges outputs.

    Attributes:
        accepted: outputs that were correct on these data.
        unchanged: detects changes of their files.
        generated: how often data had to be generated.
    """

    def __init__(self, folder: Path, harness: str) -> None:
        self._folder = folder
        self._harness = harness
        self.generated = 0
        self.accepted = AcceptedOutputs()
        self.unchanged = UnchangedFiles()
        folder.mkdir(parents=True, exist_ok=True)

    def obtain(
        self, spec: OpSpec, oracle: Oracle, case: Case, seed: int, *, audited: bool = True
    ) -> CaseData:
        """Return the data of ``case`` for ``seed``, generating them if necessary.

        Args:
            spec: operator.
            oracle: generates inputs and computes expected outputs.
            case: one of the operator's cases.
            seed: seed of the values.
            audited: whether to find out which wrong outputs the verdict would accept.
        """
        entry = self._entry(spec, case, seed, audited)
        with entry_lock(entry, fcntl.LOCK_SH):
            if OWN_FILES.use(entry):
                os.utime(entry)  # or else it may be removed from now on, to make room
                return self._read(entry, case)
        with entry_lock(entry, fcntl.LOCK_EX):  # others may be generating them: wait
            if not OWN_FILES.use(entry):
                if entry.exists():
                    OWN_FILES.note_repair("inputs")
                    remove_tree(entry)
                self._generate(entry, oracle, case, seed, audited)
                self.generated += 1
            os.utime(entry)
            return self._read(entry, case)

    def draw(
        self, oracle: Oracle, case: Case, seed: int, shared: Collection[str] = (), shared_seed: int = 0
    ) -> CaseData:
        """Return data of ``case`` that nobody else uses; ``discard`` removes them.

        Args:
            oracle: generates inputs and computes expected outputs.
            case: one of the operator's cases, or drawn from its domain.
            seed: seed of the values.
            shared: names of inputs that are drawn with ``shared_seed`` instead.
            shared_seed: see ``shared``.
        """
        inputs = oracle.inputs(case, seed)
        if shared:
            same = oracle.inputs(case, shared_seed)
            names = [tensor.name for tensor in case.inputs]
            inputs = [same[at] if name in shared else inputs[at] for at, name in enumerate(names)]
        expected = oracle.expected(case, inputs)
        held = [[stored_array(array) for array in arrays] for arrays in inputs]
        folder = Path(tempfile.mkdtemp(prefix="drawn-", dir=self._folder))
        try:
            written = _write_arrays(folder, "input", held)
        except InfrastructureError:
            remove_tree(folder)
            raise
        files = tuple(_guarded(folder, "input", case.inputs, written))
        self.unchanged.note_written(files)
        return CaseData(
            input_files=tuple(tuple(folder / item["file"] for item in group) for group in written),
            expected=tuple(tuple(arrays) for arrays in expected),
            files=files,
            folder=folder,
            insensitive=(),
        )

    def discard(self, data: CaseData) -> None:
        """Remove data that were drawn for one candidate."""
        self.accepted.forget(data.folder)
        self.unchanged.forget(data.files)
        remove_tree(data.folder)

    def forget(self, data: CaseData) -> None:
        """Drop data that were tampered with."""
        self.accepted.forget(data.folder)
        self.unchanged.forget(data.files)
        with contextlib.suppress(OSError):
            remove_tree(data.folder)

    def _entry(self, spec: OpSpec, case: Case, seed: int, audited: bool) -> Path:
        identity = (_FORMAT, self._harness, spec.folder_digest, case, seed, audited)
        return self._folder / digest_of("case_data", *identity)

    def _generate(self, entry: Path, oracle: Oracle, case: Case, seed: int, audited: bool) -> None:
        inputs = oracle.inputs(case, seed)
        scratch = Path(tempfile.mkdtemp(prefix="new-", dir=self._folder))
        try:
            expected = oracle.expected(case, inputs)
            held = [[stored_array(array) for array in arrays] for arrays in inputs]
            index = {
                "inputs": _write_arrays(scratch, "input", held),
                "expected": _write_arrays(scratch, "expected", expected),
                "insensitive": insensitivities(oracle, case, inputs, expected) if audited else (),
            }
            (scratch / _INDEX_NAME).write_text(json.dumps(index))
            OWN_FILES.seal(scratch, final=entry)
            scratch.rename(entry)
        finally:
            remove_tree(scratch)  # gone already after a rename

    def _read(self, entry: Path, case: Case) -> CaseData:
        """Return data whose digests were just compared, or were before and have the same attributes."""
        data = _read(entry, case)
        self.unchanged.note(data.files)
        return data


def _write_arrays(folder: Path, prefix: str, groups: Sequence[Sequence[Array]]) -> list[list[dict[str, Any]]]:
    return [
        [_write_array(folder / f"{prefix}_{number}_{index}.bin", array) for index, array in enumerate(arrays)]
        for number, arrays in enumerate(groups)
    ]


def _write_array(path: Path, array: Array) -> dict[str, Any]:
    write_array(path, array)
    path.chmod(0o444)
    return {
        "file": path.name,
        "dtype": array.dtype.name,
        "shape": array.shape,
        "digest": hashlib.sha256(array_bytes(array)).hexdigest(),
    }


def _read(entry: Path, case: Case) -> CaseData:
    index = json.loads((entry / _INDEX_NAME).read_text())
    return CaseData(
        input_files=tuple(tuple(entry / item["file"] for item in group) for group in index["inputs"]),
        expected=tuple(tuple(_map_array(entry, item) for item in group) for group in index["expected"]),
        files=(
            *_guarded(entry, "input", case.inputs, index["inputs"]),
            *_guarded(entry, "the expectation of output", case.outputs, index["expected"]),
        ),
        folder=entry,
        insensitive=tuple(index["insensitive"]),
    )


def _guarded(
    entry: Path, role: str, tensors: Sequence[TensorSpec], groups: Sequence[Sequence[dict[str, Any]]]
) -> list[GuardedFile]:
    return [
        GuardedFile(f"{role} {tensor.name!r}", entry / item["file"], item["digest"])
        for tensor, group in zip(tensors, groups, strict=True)
        for item in group
    ]


def _map_array(entry: Path, item: dict[str, Any]) -> Array:
    dtype, shape = np.dtype(item["dtype"]), tuple(item["shape"])
    path = entry / item["file"]
    if path.stat().st_size == 0:
        return np.empty(shape, dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r", shape=shape))
