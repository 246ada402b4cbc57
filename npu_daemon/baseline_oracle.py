"""What is expected of an operator without a reference: the outputs of its own sources."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Backend, Failure, Oracle, Verdict
from ascend_gym.core.records import Case, Diagnostic, MeasureProtocol, OpSpec, Phase
from ascend_gym.suite.inputs import Array, stored_array, write_array

SAID = Diagnostic(
    phase=Phase.VERIFY,
    message="this operator has no reference: "
    "outputs are compared with those of its own sources, right or wrong",
)


@dataclass(frozen=True)
class BaselineOracle:
    """Inputs of the operator's cases; expectations by running its own sources.

    Attributes:
        drawing: oracle that draws the inputs.
        spec: the operator.
        backend: runs its sources.
        protocol: limits of a run.
    """

    drawing: Oracle
    spec: OpSpec
    backend: Backend
    protocol: MeasureProtocol

    def inputs(self, case: Case, seed: int) -> list[list[Array]]:
        """Return the arrays of each input parameter."""
        return self.drawing.inputs(case, seed)

    def expected(self, case: Case, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Return what the operator's own sources compute.

        Raises:
            MisuseError: they do not build or run; the message says why.
        """
        built = self.backend.build(self.spec, case, self.spec.baseline, self.protocol)
        if isinstance(built, Failure):
            raise self._useless(built)
        with tempfile.TemporaryDirectory(prefix="ascend-gym-baseline-") as name:
            files = []
            for number, arrays in enumerate(inputs):
                files.append([Path(name) / f"input_{number}_{index}.bin" for index in range(len(arrays))])
                for path, array in zip(files[-1], arrays, strict=True):
                    write_array(path, stored_array(array))
            run = self.backend.run(built, case, files, self.protocol)
            if isinstance(run, Failure):
                raise self._useless(run)
            try:
                rows = zip(case.outputs, run.outputs, strict=True)
                return [[] if tensor.open else [array.copy() for array in arrays] for tensor, arrays in rows]
            finally:
                self.backend.cleanup(run)

    def judge(
        self, case: Case, outputs: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]]
    ) -> Verdict:
        """Compare outputs with those of the operator's own sources."""
        return self.drawing.judge(case, outputs, expected)

    def _useless(self, failure: Failure) -> MisuseError:
        said = failure.diagnostics[0] if failure.diagnostics else ""
        return MisuseError(
            f"{self.spec.op_id} has no reference, and its own sources do not run: "
            f"{failure.status.value}: {said}"
        )
