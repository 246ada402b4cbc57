"""Operators installed on this host, and clients' own operators whose references may be executed here.

The reference of an operator is a program that runs in the trusted process with all rights of its user. A
shared daemon therefore only accepts references from installed suites and from places that its owner permits.
A client could otherwise name any folder, and candidates' own files are in the daemon's cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Oracle, Verdict
from ascend_gym.core.records import (
    Candidate,
    Case,
    Diagnostic,
    EvalRequest,
    EvalResult,
    GivenArray,
    GivenOperator,
    OpSpec,
    Phase,
    TensorSpec,
)
from ascend_gym.suite.inputs import Array, loaded_array
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from ascend_gym.suite.verdict import judge

NOTE = Diagnostic(
    phase=Phase.VERIFY,
    message="judged by inputs and expected outputs that the client sent: they are the same in every run, and "
    "nobody else has checked them",
)


def given_spec(op_id: str, given: GivenOperator, candidate: Candidate) -> OpSpec:
    """Return an operator without a folder, with the candidate itself in place of its baseline."""
    return OpSpec(
        op_id=op_id,
        op_type=given.op_type,
        folder="",
        level=1,
        category="given",
        description="sent as data",
        auto_sync=given.auto_sync,
        reads_all_inputs=given.reads_all_inputs,
        cases=tuple(each.case for each in given.cases),
        baseline=candidate,
        folder_digest=given.digest,
    )


def noted(result: EvalResult) -> EvalResult:
    """Return the result with a note on what the outputs were compared with."""
    return result.model_copy(update={"diagnostics": (*result.diagnostics, NOTE)})


class GivenOracle:
    """An ``Oracle`` with the data of a client; the seed is ignored."""

    def __init__(self, given: GivenOperator) -> None:
        self._given = {each.case.case_id: each for each in given.cases}

    def inputs(self, case: Case, seed: int) -> list[list[Array]]:
        """Return the arrays of each input parameter, one for each declared shape."""
        return _arrays(case.inputs, self._given[case.case_id].inputs)

    def expected(self, case: Case, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Return the expected arrays of each output parameter, one for each declared shape."""
        return _arrays(case.outputs, self._given[case.case_id].expected)

    def judge(
        self, case: Case, outputs: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]]
    ) -> Verdict:
        """Compare outputs with expected outputs."""
        return judge(case, outputs, expected)


def _arrays(tensors: Sequence[TensorSpec], groups: Sequence[Sequence[GivenArray]]) -> list[list[Array]]:
    return [
        [
            loaded_array(array.raw, array.dtype, shape)
            for array, shape in zip(arrays, tensor.shapes, strict=False)
        ]
        for tensor, arrays in zip(tensors, groups, strict=True)
    ]


@dataclass(frozen=True)
class TrustedReferences:
    """Operators outside the installed suites that a daemon may accept.

    Attributes:
        folders: folders below which operators are accepted.
        digests: folder digests of operators that are accepted anywhere.
        barred: folders that contain candidates' files; nothing below them is accepted.
    """

    folders: tuple[Path, ...] = ()
    digests: frozenset[str] = frozenset()
    barred: tuple[Path, ...] = ()

    def check(self, folder: Path, digest: str) -> None:
        """Check that the operator in a folder may be accepted.

        Args:
            folder: folder as named by the client.
            digest: digest of its contents.

        Raises:
            MisuseError: it may not.
        """
        place = folder.resolve()
        allowed = digest in self.digests or any(place.is_relative_to(each.resolve()) for each in self.folders)
        if not allowed or any(place.is_relative_to(each.resolve()) for each in self.barred):
            raise MisuseError(
                f"{folder} is not an operator whose reference this daemon may execute: use an operator of an "
                "installed suite or a private daemon (give no address), send inputs and expected outputs as "
                "data (ascend-gym evaluate --as-data), or have the daemon's owner start it with "
                f"--reference-folder {folder} or --reference-digest {digest}"
            )


class OperatorCatalog:
    """Operators of this host and their oracles, loaded once per version.

    Args:
        trusted: clients' own operators that may be accepted; ``None`` for all.
    """

    def __init__(self, trusted: TrustedReferences | None = None) -> None:
        self._trusted = trusted
        self._loaded: dict[tuple[str, str | None], tuple[OpSpec, Oracle]] = {}

    def resolve(self, request: EvalRequest) -> tuple[OpSpec, Oracle]:
        """Return the operator that ``request`` names, and its oracle.

        Raises:
            MisuseError: the operator does not exist, its folder is invalid, or its reference may not
                be executed here.
        """
        if request.given is not None:
            spec = given_spec(request.op_id, request.given, request.candidate)
            return spec, GivenOracle(request.given)
        name = (request.op_id, request.op_folder)
        known = self._loaded.get(name)
        if known is None or known[0].folder_digest != request.folder_digest:
            known = self._loaded[name] = self._load(request)
        return known

    def _load(self, request: EvalRequest) -> tuple[OpSpec, Oracle]:
        if request.op_folder is None:
            spec = load_operator(request.op_id)
            return spec, oracle_for(spec)
        folder = Path(request.op_folder)
        if self._trusted is not None:
            self._trusted.check(folder, request.folder_digest)  # before anything of it is read
        spec = load_operator(request.op_id, op_dir=folder)
        if self._trusted is not None:
            self._trusted.check(folder, spec.folder_digest)
        return spec, oracle_for(spec)
