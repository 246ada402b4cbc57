"""Builds of host and kernel code, kept apart and found again by a digest of everything that changes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ascend_gym.core.digest import digest_of
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import Candidate, Case, MeasureProtocol, OpSpec, Phase
from ascend_gym.core.status import Status
from npu_daemon.cache_folder import BuildStore
from npu_daemon.sandbox import ResourceLimits, wall_limit_s
from npu_daemon.simulator.chips import Chip
from npu_daemon.simulator.host_schema import OperatorDefinition
from npu_daemon.simulator.host_side import build_host, describe_operator, kernel_prelude
from npu_daemon.simulator.kernel_build import KernelVariant, build_kernel, entry_of, library_name
from npu_daemon.simulator.task_type import CoreKind, TaskType, core_kinds, kernel_task_types
from npu_daemon.simulator.toolchain import Toolchain

TilingKey: TypeAlias = Callable[[], "int | Failure | None"]
"""Answers with the tiling key that a tiling program chooses, why there is none, or ``None`` if not known."""

_DEFINITION = "definition.json"
_HOST_MEMORY_BYTES = 3 * 2**30
_HOST_FILE_BYTES = 256 * 2**20


@dataclass(frozen=True)
class HostBuild:
    """Built host code; ``seconds`` is what building took, 0 when it was cached."""

    library: Path
    definition: OperatorDefinition
    key: str
    seconds: float


@dataclass(frozen=True)
class KernelBuild:
    """A built kernel for one column of element types.

    Attributes:
        libraries: one for each kind of core that the kernel can run on.
        task_type: the cores it wants where it names none itself.
        folder: holds its sources, for diagnostics.
    """

    libraries: Mapping[CoreKind, Path]
    task_type: TaskType
    folder: Path
    host: HostBuild
    seconds: float


class BuildCache:
    """Builds once per content: two workers that want the same build share one.

    Args:
        root: holds the builds; may be shared by processes.
        toolchain: builds.
        marked: whether the blocks of what is built say that they are reached.
    """

    def __init__(self, root: Path, toolchain: Toolchain, *, marked: bool = False) -> None:
        self._store = BuildStore(root)
        self._toolchain = toolchain
        self._marked = marked
        self._marks = ("marked",) if marked else ()

    def candidate(
        self,
        spec: OpSpec,
        case: Case,
        candidate: Candidate,
        chip: Chip,
        protocol: MeasureProtocol,
        on_host: Callable[[HostBuild], TilingKey] = lambda _: lambda: None,
    ) -> KernelBuild | Failure:
        """Return host and kernel code of ``candidate``, which stay within the boundary, or what is wrong.

        What refuses them is ``guard_rejected``.

        Args:
            spec: the operator.
            case: the case that it is built for.
            candidate: tiling and kernel sources.
            chip: what it is built for.
            protocol: time limits of the build.
            on_host: called with host code that may run, before the kernel is built. What it returns is asked
                for the tiling key of the case if the kernel is a template; without one, all of its instances
                are built.
        """
        self._toolchain.ensure_whole()
        host = self.host(spec, candidate, chip, protocol)
        if isinstance(host, Failure):
            return host
        refused = self._reads_more(spec, candidate, host, chip, protocol)
        if refused is not None:
            return refused
        key_of_case = on_host(host)
        entry = entry_of(candidate.kernel, spec.name)
        tiling_key = key_of_case() if entry is not None and entry.types is not None else None
        if isinstance(tiling_key, Failure):
            return Failure(tiling_key.status, tiling_key.diagnostics, tiling_key.seconds + host.seconds)
        kernel = self.kernel(spec, case, candidate, host, protocol, tiling_key)
        if isinstance(kernel, Failure):
            return Failure(kernel.status, kernel.diagnostics, kernel.seconds + host.seconds)
        return kernel

    def _reads_more(
        self, spec: OpSpec, candidate: Candidate, host: HostBuild, chip: Chip, protocol: MeasureProtocol
    ) -> Failure | None:
        """Return why a tiling program may not read values: those that the operator's own one does not.

        What it reads it could compute with at no cost, and hand results to the kernel.
        """
        wanted = host.definition.value_dependent_inputs()
        if not wanted or candidate.host == spec.baseline.host:
            return None
        own = self.host(spec, spec.baseline, chip, protocol)
        allowed = frozenset() if isinstance(own, Failure) else own.definition.value_dependent_inputs()
        if wanted <= allowed:
            return None
        names = ", ".join(sorted(wanted - allowed))
        message = (
            f"the tiling program declares that it depends on the values of {names} (ValueDepend), on which "
            "that of the operator does not: compute on the device"
        )
        return Failure.of(Status.GUARD_REJECTED, Phase.GUARD, message, host.seconds)

    def host(
        self, spec: OpSpec, candidate: Candidate, chip: Chip, protocol: MeasureProtocol
    ) -> HostBuild | Failure:
        """Return the built host code of ``candidate``.

        Args:
            spec: the operator.
            candidate: tiling and kernel sources.
            chip: whose sizes the tiling program reads.
            protocol: time limits of the build.
        """
        geometry = chip.tiling_geometry()
        identity = (self._toolchain.digest, candidate.host, spec.op_type, geometry.soc_version)
        key = digest_of("host", *identity, *self._marks)

        def make(folder: Path) -> Failure | None:
            limits = ResourceLimits(
                wall_s=wall_limit_s(protocol.build_timeout_s),
                cpu_s=protocol.build_timeout_s,
                memory_bytes=_HOST_MEMORY_BYTES,
                file_bytes=_HOST_FILE_BYTES,
                folder_bytes=2 * _HOST_FILE_BYTES,
            )
            library = build_host(
                candidate.host, folder, self._toolchain.host_folder, limits=limits, marked=self._marked
            )
            if isinstance(library, Failure):
                return library
            definition = describe_operator(
                library, geometry, self._toolchain.host_folder, op_type=spec.op_type
            )
            if isinstance(definition, Failure):
                return definition
            (folder / _DEFINITION).write_text(definition.model_dump_json(), encoding="utf-8")
            return None

        made = self._store.obtain("host", key, make)
        if isinstance(made, Failure):
            return made
        folder, seconds = made
        definition = OperatorDefinition.model_validate_json((folder / _DEFINITION).read_text("utf-8"))
        return HostBuild(folder / "host.so", definition, key, seconds)

    def kernel(
        self,
        spec: OpSpec,
        case: Case,
        candidate: Candidate,
        host: HostBuild,
        protocol: MeasureProtocol,
        tiling_key: int | None = None,
    ) -> KernelBuild | Failure:
        """Return the built kernel of ``candidate`` for the element types of ``case``.

        Args:
            spec: the operator.
            case: the case that it is built for.
            candidate: tiling and kernel sources.
            host: its built host code, which declares the parameters.
            protocol: time limits of the build.
            tiling_key: of the only instance to build of a kernel that is a template; ``None`` for all.
        """
        prelude = kernel_prelude(host.definition, case)
        if isinstance(prelude, Failure):
            return prelude
        instance = () if tiling_key is None else (tiling_key,)
        identity = (candidate.kernel, candidate.build_flags, prelude, spec.name, *instance)
        key = digest_of("kernel", self._toolchain.digest, *identity, *self._marks)

        variant = KernelVariant(candidate.build_flags, tiling_key, self._marked)

        def make(folder: Path) -> Failure | None:
            return build_kernel(
                candidate.kernel, prelude, spec.name, folder, self._toolchain, protocol, variant
            )

        made = self._store.obtain("kernel", key, make)
        if isinstance(made, Failure):
            return made
        folder, seconds = made
        types = kernel_task_types(candidate.kernel)
        libraries = {kind: folder / library_name(kind) for kind in core_kinds(types)}
        return KernelBuild(libraries, types[0], folder, host, seconds)
