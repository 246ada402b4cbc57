"""Inputs and expected outputs of cases, generated and audited once and kept as raw files."""

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
    """What one case is run on and judged by.

    Attributes:
        input_files: for each input parameter, its raw little-endian files.
        expected: for each output parameter, its expected arrays (memory-mapped, read-only).
        files: every file behind these, as generated.
        folder: holds them.
        insensitive: what the verdict of this case would accept although it is wrong, one sentence each.
    """

    input_files: tuple[tuple[Path, ...], ...]
    expected: tuple[tuple[Array, ...], ...]
    files: tuple[GuardedFile, ...]
    folder: Path
    insensitive: tuple[str, ...]


class CaseDataCache:
    """A folder with the data of cases, by the digest of everything that determines them.

    Args:
        folder: where to keep them; made if missing, may be shared by processes.
        harness: identity of what generates inputs and judges.
        secret: what values are drawn from beside the seed; empty for values that everybody can draw.
        second_secret: likewise, for the values of second looks at champions; by default it is drawn anew.

    Attributes:
        accepted: outputs that were correct on these data.
        unchanged: looks after their files.
        generated: how often data were not there yet.
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
        """Return the data of ``case`` for ``seed``, generating what is not there yet.

        Args:
            spec: the operator.
            oracle: draws inputs and computes what is expected.
            case: one of the operator's.
            seed: of the values.
            audited: whether to find out what the verdict would accept although it is wrong.
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
        """Return data of ``case`` on values that no client can draw.

        Args:
            spec: the operator.
            oracle: draws inputs and computes expectations.
            case: the case.
            seed: distinguishes draws; the values also depend on the daemon's second secret.
        """
        secret_seed = int(digest_of("second look", self._second_secret, seed)[:15], 16)
        return self.obtain(spec, oracle, case, secret_seed, audited=False)

    def marked(self, device: DeviceInfo) -> DeviceInfo:
        """Return what identifies results on ``device``, whose values also follow from the secret."""
        if not self._secret:
            return device
        digest = digest_of("secret values", device.toolchain_digest, self._secret)
        return device.model_copy(update={"toolchain_digest": digest})

    def forget(self, data: CaseData) -> None:
        """Drop data, because something tampered with them."""
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
