"""Inputs and expected outputs of cases, generated and audited once, and stored as raw files."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes  # noqa: F401 - registers bfloat16 with numpy by name
import numpy as np

from ascend_gym.core.digest import digest_of
from ascend_gym.core.protocols import Oracle
from ascend_gym.core.records import Case, DeviceInfo, OpSpec, TensorSpec
from ascend_gym.core.remove_tree import remove_tree
from ascend_gym.suite.audit import insensitivities
from ascend_gym.suite.inputs import stored_array
from npu_daemon.accepted_outputs import AcceptedOutputs
from npu_daemon.guards import GuardedFile, UnchangedFiles, file_digest

if TYPE_CHECKING:
    from ascend_gym.core.protocols import Array

_INDEX_NAME = "index.json"


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
        secret: secret from which values are derived, together with the seed; empty for reproducible values.
        second_secret: secret for the values of champions' second looks; by default random.

    Attributes:
        accepted: outputs that were correct on these data.
        unchanged: detects changes of their files.
        generated: how often data had to be generated.
    """

    def __init__(
        self,
        folder: Path,
        harness: str,
        secret: bytes = b"",
        second_secret: bytes | None = None,
    ) -> None:
        self._folder = folder
        self._harness = harness
        self.generated = 0
        self._secret = secret
        self._second_secret = second_secret or secrets.token_bytes(32)
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
        if self._secret:
            seed = int(digest_of("secret seed", self._secret, seed)[:15], 16)
        entry = self._entry(spec, case, seed, audited)
        if not (entry / _INDEX_NAME).is_file():
            self._generate(entry, oracle, case, seed, audited)
            self.generated += 1
        os.utime(entry)
        return _read(entry, case)

    def obtain_secret(self, spec: OpSpec, oracle: Oracle, case: Case, seed: int) -> CaseData:
        """Return data of ``case`` with values that no client can predict.

        Args:
            spec: operator.
            oracle: generates inputs and computes expected outputs.
            case: case.
            seed: distinguishes sets of values; they also depend on the daemon's second secret.
        """
        secret_seed = int(digest_of("second look", self._second_secret, seed)[:15], 16)
        return self.obtain(spec, oracle, case, secret_seed, audited=False)

    def marked(self, device: DeviceInfo) -> DeviceInfo:
        """Return ``device`` with the identity of the secret, on which results depend, too."""
        if not self._secret:
            return device
        digest = digest_of("secret values", device.toolchain_digest, self._secret)
        return device.model_copy(update={"toolchain_digest": digest})

    def forget(self, data: CaseData) -> None:
        """Drop data that were tampered with."""
        self.accepted.forget(data.folder)
        self.unchanged.forget(data.files)
        with contextlib.suppress(OSError):
            remove_tree(data.folder)

    def _entry(self, spec: OpSpec, case: Case, seed: int, audited: bool) -> Path:
        identity = (self._harness, spec.folder_digest, case, seed, audited)
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
            _rename_unless_there(scratch, entry)
        finally:
            remove_tree(scratch)  # gone already after a rename


def _rename_unless_there(source: Path, target: Path) -> None:
    try:
        source.rename(target)
    except OSError:
        if not (target / _INDEX_NAME).is_file():  # otherwise another process was faster with equal data
            raise


def _write_arrays(folder: Path, prefix: str, groups: Sequence[Sequence[Array]]) -> list[list[dict[str, Any]]]:
    return [
        [_write_array(folder / f"{prefix}_{number}_{index}.bin", array) for index, array in enumerate(arrays)]
        for number, arrays in enumerate(groups)
    ]


def _write_array(path: Path, array: Array) -> dict[str, Any]:
    np.ascontiguousarray(array).tofile(path)
    path.chmod(0o444)
    return {
        "file": path.name,
        "dtype": array.dtype.name,
        "shape": array.shape,
        "digest": file_digest(path),
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
