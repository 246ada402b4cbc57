"""Shapes of outputs that no test says: what the operator's own InferShape function answers.

Definition and InferShape function are built once for an operator, as its tiling program is, and run confined
for each case.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from ascend_gym.core.config import cache_root
from ascend_gym.core.errors import OperatorFormatError
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Case, DType, TensorSpec
from ascend_gym.core.remove_tree import remove_tree
from ascend_gym.suite.cann_opdef import OperatorDef
from ascend_gym.suite.domain_library import LibraryOperator, shape_sources
from ascend_gym.suite.inputs import Array
from npu_daemon.importer.library_cases import CaseDraft, ProposedTensor, output_dtypes
from npu_daemon.simulator.chips import load_chip
from npu_daemon.simulator.host_schema import OperatorDefinition
from npu_daemon.simulator.host_side import build_host, describe_operator, infer_shapes
from npu_daemon.simulator.toolchain import Toolchain, obtain_toolchain

_CHIP = "910B2"  # shapes are the same on all


class OutputShapes:
    """The InferShape function of an operator, built when it is first asked.

    Args:
        operator: of a library.
        definition: of it.
        note: called with what keeps the function from answering.
    """

    def __init__(
        self, operator: LibraryOperator, definition: OperatorDef, note: Callable[[str], None]
    ) -> None:
        self._operator = operator
        self._definition = definition
        self._note = note

    def completed(self, proposal: CaseDraft, inputs: Sequence[Sequence[Array]]) -> CaseDraft:
        """Return a proposal with the shapes of its outputs; as it is where they are said or not answered.

        Args:
            proposal: a case.
            inputs: values of each input parameter, which some shapes depend on.
        """
        if proposal.outputs:
            return proposal
        case = self._case(proposal)
        if case is None or self._built is None:
            return proposal
        library, described, toolchain = self._built
        scratch = Path(tempfile.mkdtemp(prefix="ascend-gym-shapes-"))
        try:
            files = []
            for place, arrays in enumerate(inputs):
                paths = [scratch / f"input{place}_{number}.bin" for number in range(len(arrays))]
                for path, array in zip(paths, arrays, strict=True):
                    path.write_bytes(array.tobytes())
                files.append(paths)
            answer = infer_shapes(
                library,
                described,
                case,
                load_chip(_CHIP).tiling_geometry(),
                scratch,
                toolchain.host_folder,
                input_files=files,
            )
        finally:
            remove_tree(scratch)
        if isinstance(answer, Failure):
            self._note(f"{proposal.where}: InferShape: {answer.diagnostics[0].message}")
            return proposal
        given = {each.name: each.shapes for each in case.inputs if not each.optional_absent}
        left, outputs = list(answer), []
        for tensor in case.outputs:
            own, left = left[: len(tensor.shapes)], left[len(tensor.shapes) :]
            outputs.append(ProposedTensor(given.get(tensor.name, tuple(own)), tensor.dtype))
        return dataclasses.replace(proposal, outputs=tuple(outputs))

    def _case(self, proposal: CaseDraft) -> Case | None:
        """Return the case of a proposal with outputs of no shape yet; ``None`` where a type is not known."""
        lists = [
            len(tensor.shapes)
            for parameter, tensor in zip(self._definition.inputs, proposal.inputs, strict=True)
            if parameter.dynamic and tensor.shapes is not None
        ]
        outputs = []
        dtypes = output_dtypes(self._definition, proposal)
        for parameter, dtype in zip(self._definition.outputs, dtypes, strict=True):
            if dtype is None or (parameter.dynamic and not lists):
                return None
            count = lists[0] if parameter.dynamic else 1
            outputs.append(
                TensorSpec(name=parameter.name, dtype=dtype, shapes=((),) * count, dynamic=parameter.dynamic)
            )
        inputs = [
            TensorSpec(
                name=parameter.name,
                dtype=tensor.dtype or next(filter(None, parameter.dtypes), DType.FLOAT32),
                shapes=tensor.shapes if tensor.shapes is not None else ((1,),),
                dynamic=parameter.dynamic,
                optional_absent=tensor.shapes is None,
            )
            for parameter, tensor in zip(self._definition.inputs, proposal.inputs, strict=True)
        ]
        return Case(
            case_id="shapes", inputs=tuple(inputs), outputs=tuple(outputs), attributes=proposal.attributes
        )

    @cached_property
    def _built(self) -> tuple[Path, OperatorDefinition, Toolchain] | None:
        """Library and definition, ``None`` where there is no such function or it does not build."""
        try:
            sources = shape_sources(self._operator)
        except OperatorFormatError as error:
            self._note(f"InferShape: {error}")
            return None
        if sources is None:
            return None
        toolchain = obtain_toolchain(cache_root(), lambda _: None)
        self._folder = tempfile.TemporaryDirectory(prefix="ascend-gym-shapes-")
        library = build_host(sources, Path(self._folder.name), toolchain.host_folder)
        if isinstance(library, Failure):
            self._note(f"InferShape: {library.diagnostics[0]}")
            return None
        described = describe_operator(
            library,
            load_chip(_CHIP).tiling_geometry(),
            toolchain.host_folder,
            op_type=self._operator.op_type,
        )
        if isinstance(described, Failure):
            self._note(f"InferShape: {described.diagnostics[0]}")
            return None
        return library, described, toolchain
