"""Operators installed on this host, and clients' own operators whose references may be executed here.

The reference of an operator is a program that runs in the trusted process with all rights of its user. A
shared daemon therefore only accepts references from installed suites and from places that its owner permits.
A client could otherwise name any folder, and candidates' own files are in the daemon's cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ascend_gym.core.errors import MisuseError
from ascend_gym.core.protocols import Oracle
from ascend_gym.core.records import EvalRequest, OpSpec
from ascend_gym.suite.loader import load_operator
from ascend_gym.suite.oracle import oracle_for
from npu_daemon.given_operator import GivenOracle, given_spec


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
