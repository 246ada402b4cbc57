"""Tensors in global memory as the interpreter has them: their values, and who wrote what when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascend_gym.core.records import Case
from ascend_gym.staged.hosting import StagedLaunch
from ascend_gym.staged.syntax import Program, StagedError
from ascend_gym.staged.vector_unit import Buffer, Core

Array = NDArray[Any]

NUMPY_TYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "u8": np.uint8}
"""By type in the language."""


@dataclass
class _Global:
    """A tensor in global memory: flat values, who wrote each element, and when."""

    data: Array
    writer: Array | None = None
    epoch: Array | None = None


class GlobalMemory:
    """The tensors of one run.

    Attributes:
        epoch: how often all cores have met.
    """

    def __init__(
        self,
        program: Program,
        case: Case,
        launch: StagedLaunch,
        inputs: Sequence[Array],
        fault: Callable[[int, str], StagedError],
    ) -> None:
        """Take the inputs; outputs and workspace are written by nobody yet.

        Args:
            program: names the tensors.
            case: has their shapes.
            launch: has their types and the size of the workspace.
            inputs: one array for each input.
            fault: makes an error of a line and a problem.
        """
        self.epoch = 0
        self._case, self._fault = case, fault
        self._held = self._tensors(program, case, launch, inputs)

    def check(self, name: str, begin: int, end: int, line: int) -> None:
        """Check that a tensor has the elements from ``begin`` to before ``end``.

        Raises:
            StagedError: it has not.
        """
        size = self._held[name].data.size
        if begin < 0 or end > size:
            raise self._fault(line, f"{name} from {begin} to {end}: it has {size} elements")

    def get(self, core: Core, name: str, there: slice, buffer: Buffer, here: slice, line: int) -> None:
        """Copy part of a tensor into a buffer.

        Args:
            core: core that copies.
            name: name of the tensor.
            there: elements of the tensor.
            buffer: buffer of the core.
            here: elements of the buffer, as many.
            line: line of the program, for errors.

        Raises:
            StagedError: nobody wrote it, or another core since the last meeting of all.
        """
        held = self._held[name]
        if held.writer is not None and held.epoch is not None:
            writers, epochs = held.writer[there], held.epoch[there]
            if (writers < 0).any():
                raise self._fault(line, f"{name} from {there.start} on: nobody wrote all of it")
            if ((writers != core.number) & (epochs == self.epoch)).any():
                raise self._fault(
                    line, f"{name} from {there.start} on: another core wrote it; sync_all() first"
                )
        buffer.data[here] = held.data[there]
        buffer.written[here] = True

    def put(self, core: Core, name: str, there: slice, buffer: Buffer, here: slice, line: int) -> None:
        """Copy a buffer into part of a tensor.

        Args:
            core: core that copies.
            name: name of the tensor.
            there: elements of the tensor.
            buffer: buffer of the core.
            here: elements of the buffer, as many.
            line: line of the program, for errors.

        Raises:
            StagedError: part of the buffer was never written, or another core writes there as well.
        """
        held = self._held[name]
        assert held.writer is not None
        if not buffer.written[here].all():
            raise self._fault(line, f"store to {name}: part of the buffer was never written")
        writers = held.writer[there]
        others = (writers >= 0) & (writers != core.number)
        if held.epoch is not None:
            others &= held.epoch[there] == self.epoch
        if others.any():
            first = there.start + int(np.flatnonzero(others)[0])
            raise self._fault(line, f"{name}[{first}] is written by core {held.writer[first]} as well")
        held.data[there] = buffer.data[here]
        writers[:] = core.number
        if held.epoch is not None:
            held.epoch[there] = self.epoch

    def outputs(self) -> list[Array]:
        """Return the outputs of the case.

        Raises:
            StagedError: an element was never written.
        """
        outputs = []
        for tensor in self._case.outputs:
            held = self._held[tensor.name]
            assert held.writer is not None
            missing = np.flatnonzero(held.writer < 0)
            if missing.size:
                raise StagedError(
                    0,
                    f"case {self._case.case_id}: {missing.size} of {held.data.size} elements of "
                    f"{tensor.name} are never written, first {missing[0]}; are remainders of rows, tiles "
                    "and cores stored?",
                )
            outputs.append(held.data.reshape(tensor.shapes[0]))
        return outputs

    def _tensors(
        self, program: Program, case: Case, launch: StagedLaunch, inputs: Sequence[Array]
    ) -> dict[str, _Global]:
        found: dict[str, _Global] = {}
        given = iter(inputs)
        shapes = {each.name: each.shapes[0] for each in case.outputs}
        for tensor in program.tensors:
            dtype = NUMPY_TYPES[launch.dtypes[tensor.name]]
            if tensor.role == "gm":
                found[tensor.name] = _Global(np.ascontiguousarray(next(given)).reshape(-1).view(dtype))
                continue
            size = launch.workspace if tensor.role == "work" else int(np.prod(shapes[tensor.name]))
            writer = np.full(size, -1, np.int16)
            epoch = np.full(size, -1, np.int16) if tensor.role == "work" else None
            found[tensor.name] = _Global(np.zeros(size, dtype), writer, epoch)
        return found
