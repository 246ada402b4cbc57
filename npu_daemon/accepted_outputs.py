"""Cache of outputs that were judged correct: equal outputs of the same case need no second comparison."""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.protocols import Verdict
from ascend_gym.suite.inputs import Array

DEFAULT_LIMIT_BYTES = 256 * 2**20
_LIBC = ctypes.CDLL(None)
_LIBC.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)

Outputs = Sequence[Sequence[Array]]


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
