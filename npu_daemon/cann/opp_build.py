"""Builds of operators: msopgen's project with the candidate's sources, installed into a private folder.

Steps and files are those of the msopgen manual: ``msopgen gen``, the preset ``default`` of CMakePresets.json,
the targets ``binary`` and ``package``, and ``custom_opp_*.run --install-path``. No step needs a device. Only
the kernel that a case launches is compiled where the vendor's build allows that (``cann.instance``).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.core.protocols import Failure
from ascend_gym.core.records import (
    Candidate,
    Case,
    Diagnostic,
    DType,
    MeasureProtocol,
    OpSpec,
    Phase,
    TensorSpec,
)
from ascend_gym.core.remove_tree import remove_tree
from ascend_gym.core.status import Status
from ascend_gym.suite.sources import SOURCE_SUFFIXES
from npu_daemon.cache_folder import BuildStore
from npu_daemon.cann.configuration import CannSettings
from npu_daemon.cann.instance import Instance, options_read
from npu_daemon.cann.toolkit import Toolkit
from npu_daemon.own_programs import NOT_STARTED
from npu_daemon.sandbox import ProcessOutcome, Reach, ResourceLimits, run_limited
from npu_daemon.simulator.build_flags import refused_flags
from npu_daemon.simulator.compiler_errors import parse_compiler_errors
from npu_daemon.simulator.host_build import header_folders

VENDOR = "customize"
LIBRARY = "op_api/lib/libcust_opapi.so"
_INCLUDE = "op_api/include"
_PROJECT = "project"
_SIDES = ("op_host", "op_kernel")
_KERNEL_TARGET = re.compile(r"(?m)^\s*npu_op_kernel_library\s*\(\s*(\w+)")
_OLD_TEMPLATE = re.compile(r"(?m)^\s*add_kernels_compile\s*\(")
_KEPT = frozenset({"CMakeLists.txt"})
_MSOPGEN_TYPES = {
    DType.FLOAT16: "fp16",
    DType.FLOAT32: "float",
    DType.BFLOAT16: "bf16",
    DType.FLOAT64: "double",
}
_BUILD_MEMORY_BYTES = 1 << 40  # of address space: the compiler's drivers reserve much more than they use
_BUILD_FILE_BYTES = 1 << 30
_BUILD_PROCESSES = 512
_SHOWN_WORDS = 60
_OPTIONS = "options"
_PROBE = [
    {
        "op": "Probe",
        "language": "cpp",
        "input_desc": [{"name": "x", "param_type": "required", "format": ["ND"], "type": ["float"]}],
        "output_desc": [{"name": "y", "param_type": "required", "format": ["ND"], "type": ["float"]}],
    }
]
_ALLOWED_ALREADY = {Path("/usr")}  # programs of the system


@dataclass(frozen=True)
class OppBuild:
    """An installed operator.

    Attributes:
        vendor: folder for ``ASCEND_CUSTOM_OPP_PATH``.
        function: name of the call, ``aclnnX``.
        header: text of the generated header that declares it.
        key: digest of the build's inputs.
        instance: kernel that was compiled; empty for all of the operator.
        seconds: wall seconds of building; 0 if it was cached.
    """

    vendor: Path
    function: str
    header: str
    key: str
    instance: Instance
    seconds: float

    @property
    def library(self) -> Path:
        """Library that contains the call."""
        return self.vendor / LIBRARY


class OppBuilder:
    """Builds operators, equal contents once.

    Args:
        toolkit: CANN toolkit.
        settings: settings with the chip.
        folder: folder of the builds.
    """

    def __init__(self, toolkit: Toolkit, settings: CannSettings, folder: Path) -> None:
        self._toolkit = toolkit
        self._settings = settings
        self._store = BuildStore(folder)
        self._mistaken: set[str] = set()
        self._narrows = settings.single_kernel

    @cached_property
    def options(self) -> frozenset[str]:
        """Options of ``cann.instance`` that the toolkit's build knows, by a project that is generated once.

        Raises:
            InfrastructureError: msopgen does not work.
        """

        def make(folder: Path) -> None:
            project = self._generated(folder, _PROBE, time.monotonic() + self._settings.build_timeout_s)
            known = options_read(project, self._toolkit.root)
            remove_tree(project)
            (folder / _OPTIONS).write_text("\n".join(sorted(known)), encoding="utf-8")

        made = self._store.obtain("options", digest_of("options", self._toolkit.digest), make)
        assert not isinstance(made, Failure), "make() raises instead"
        return frozenset((made[0] / _OPTIONS).read_text("utf-8").split())

    def mistaken(self, build: OppBuild) -> None:
        """Have all kernels compiled from now on where ``build`` lacks the one that is launched."""
        self._mistaken.add(build.key)

    def build(
        self,
        spec: OpSpec,
        case: Case,
        candidate: Candidate,
        protocol: MeasureProtocol,
        instance: Instance = Instance(),  # noqa: B008 (frozen)
    ) -> OppBuild | Failure:
        """Return the candidate as an installed operator package, building it if necessary.

        If the kernel of ``instance`` alone cannot be built and no source is at fault, all kernels are.

        Args:
            spec: operator.
            case: case to build for.
            candidate: tiling and kernel sources.
            protocol: time limits of the build.
            instance: kernel that the case launches; empty for all.

        Raises:
            InfrastructureError: a step that does not depend on the candidate failed.
        """
        refused = refused_flags(candidate.build_flags) or _refused_files(candidate)
        if refused is not None:
            return refused
        instance = instance.within(self.options) if instance and self._narrows else Instance()
        key = digest_of(
            *("opp", self._toolkit.digest, self._settings.compute_unit, spec.op_type, spec.auto_sync),
            *(
                candidate.host,
                candidate.kernel,
                candidate.build_flags,
                instance.parameters,
                instance.tiling_key,
            ),
        )
        if key in self._mistaken:
            return self.build(spec, case, candidate, protocol)
        try:
            made = self._store.obtain(
                "opp", key, lambda folder: self._make(folder, spec, case, candidate, protocol, instance)
            )
        except InfrastructureError:
            if not instance:
                raise
            whole = self.build(spec, case, candidate, protocol)
            self._narrows = False  # these options are what it did not take
            return whole
        if isinstance(made, Failure):
            located = any(each.file for each in made.diagnostics)
            if not instance or located or made.status is not Status.BUILD_ERROR:
                return made
            whole = self.build(spec, case, candidate, protocol)
            if isinstance(whole, OppBuild):
                self._mistaken.add(key)
            return replace(whole, seconds=whole.seconds + made.seconds)
        vendor = made[0] / "opp" / "vendors" / VENDOR
        function = f"aclnn{spec.op_type}"
        return OppBuild(vendor, function, _header(vendor, function), key, instance, made[1])

    def _generated(self, folder: Path, prototype: object, deadline_s: float) -> Path:
        """Have msopgen generate a project for a prototype; return its folder."""
        folder.chmod(0o755)  # msopgen writes into no other (examples of catlass, basic_matmul_aclnn)
        described = folder / "op.json"
        described.write_text(json.dumps(prototype), encoding="utf-8")
        unit = f"ai_core-{self._settings.compute_unit}"
        generate = ["gen", "-i", str(described), "-c", unit, "-lan", "cpp", "-out", str(folder / _PROJECT)]
        self._trusted("msopgen", generate, folder, deadline_s)
        return folder / _PROJECT

    def _make(
        self,
        folder: Path,
        spec: OpSpec,
        case: Case,
        candidate: Candidate,
        protocol: MeasureProtocol,
        instance: Instance,
    ) -> Failure | None:
        limit_s = max(protocol.build_timeout_s, self._settings.build_timeout_s)
        deadline_s = time.monotonic() + limit_s
        project = self._generated(folder, prototype_of(spec, case), deadline_s)
        unit = self._settings.compute_unit
        fill_project(project, spec, candidate, self._toolkit.root, unit, instance.words(folder))
        self._trusted("cmake", ["-S", ".", "-B", "build_out", "--preset=default"], project, deadline_s)
        for target in ("binary", "package"):
            outcome = self._run(
                "cmake", ["--build", "build_out", "--target", target, "-j"], project, deadline_s
            )
            if outcome.returncode != 0:
                return _build_failure(outcome, candidate, limit_s)
        self._install(folder, project, deadline_s)
        remove_tree(project)
        return None

    def _install(self, folder: Path, project: Path, deadline_s: float) -> None:
        packages = sorted((project / "build_out").glob("custom_opp_*.run"))
        if len(packages) != 1:
            raise InfrastructureError(
                f"the build left {len(packages)} packages custom_opp_*.run, expected one"
            )
        target = folder / "opp"
        target.mkdir()
        self._trusted(str(packages[0]), ["--quiet", f"--install-path={target}"], folder, deadline_s)
        if not (target / "vendors" / VENDOR / LIBRARY).is_file():
            raise InfrastructureError(f"the operator package installs no vendors/{VENDOR}/{LIBRARY}")

    def _trusted(self, program: str, arguments: Sequence[str], cwd: Path, deadline_s: float) -> None:
        """Run a step whose success does not depend on the candidate."""
        outcome = self._run(program, arguments, cwd, deadline_s)
        if outcome.returncode != 0:
            how = "took too long" if outcome.timed_out else f"failed with exit status {outcome.returncode}"
            raise InfrastructureError(f"{Path(program).name} {arguments[0]} {how}: {_ending(outcome)}")

    def _run(self, program: str, arguments: Sequence[str], cwd: Path, deadline_s: float) -> ProcessOutcome:
        path = program if program.startswith("/") else self._toolkit.program(program)
        remaining_s = max(1.0, deadline_s - time.monotonic())
        limits = ResourceLimits(
            wall_s=remaining_s,
            cpu_s=remaining_s,
            memory_bytes=_BUILD_MEMORY_BYTES,
            file_bytes=_BUILD_FILE_BYTES,
            processes=_BUILD_PROCESSES,
            open_files=4096,
        )
        folder = cwd.parent if cwd.name == _PROJECT else cwd
        environment = {**self._toolkit.environment, "HOME": str(folder)}
        return run_limited(
            [path, *arguments], cwd=cwd, limits=limits, reach=self._reach(folder), env=environment
        )

    def _reach(self, folder: Path) -> Reach:
        """Return the files that a build may use: toolkit, Python, the host's compiler, and its own folder."""
        found = (self._toolkit.find(name) for name in ("python3", "g++"))
        root = self._toolkit.root.resolve()
        folders = (root, root.parent, *self._settings.tools)
        own = {Path(path).resolve().parent.parent for path in found if path} - _ALLOWED_ALREADY
        return Reach((*folders, folder), starts_programs=True, programs=(*folders, *own))


def prototype_of(spec: OpSpec, case: Case) -> list[dict[str, object]]:
    """Return the prototype for ``msopgen gen -i``; it only affects sources that are replaced."""

    def described(tensors: Sequence[TensorSpec]) -> list[dict[str, object]]:
        return [
            {
                "name": tensor.name,
                "param_type": "dynamic" if tensor.dynamic else "required",
                "format": ["ND"],
                "type": [_MSOPGEN_TYPES.get(tensor.dtype, tensor.dtype.value)],
            }
            for tensor in tensors
        ]

    return [
        {
            "op": spec.op_type,
            "language": "cpp",
            "input_desc": described([tensor for tensor in case.inputs if not tensor.optional_absent]),
            "output_desc": described(case.outputs),
        }
    ]


def fill_project(
    project: Path,
    spec: OpSpec,
    candidate: Candidate,
    toolkit: Path,
    compute_unit: str,
    words: Sequence[str] = (),
) -> None:
    """Put a candidate into a generated project: sources, chip, toolkit and compiler options.

    Args:
        project: folder generated by msopgen.
        spec: operator.
        candidate: tiling and kernel sources.
        toolkit: folder of the CANN toolkit.
        compute_unit: msopgen's name of the chip, such as ``ascend910b``.
        words: further options of the kernel's build.

    Raises:
        InfrastructureError: the layout of the project is not as msopgen documents it.
    """
    presets = project / "CMakePresets.json"
    options = project / "op_kernel" / "CMakeLists.txt"
    if not presets.is_file() or not options.is_file():
        raise InfrastructureError(
            f"msopgen made no CMakePresets.json and op_kernel/CMakeLists.txt in {project}"
        )
    for side in _SIDES:
        for draft in (project / side).iterdir():
            if draft.is_file() and draft.name not in _KEPT:
                draft.unlink()
    for path, text in candidate.texts.items():
        target = project / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    content = json.loads(presets.read_text("utf-8"))
    variables = content["configurePresets"][0]["cacheVariables"]
    for name, value in (
        ("ASCEND_CANN_PACKAGE_PATH", str(toolkit)),
        ("ASCEND_COMPUTE_UNIT", compute_unit),
        ("vendor_name", VENDOR),
    ):
        variables.setdefault(name, {})["value"] = value
    presets.write_text(json.dumps(content, indent=4), encoding="utf-8")
    given = options.read_text("utf-8")
    sync = "on" if spec.auto_sync else "off"
    folders = [f"-I{project / folder}" for folder in header_folders(candidate.kernel)]
    listed = " ".join([f"--cce-auto-sync={sync}", *folders, *candidate.build_flags, *words])
    chip = f" COMPUTE_UNIT {compute_unit}" if words else ""
    call = f"{_options_call(given, spec.op_type)}{chip} OPTIONS {listed})\n"
    options.write_text(call + given, encoding="utf-8")


def _refused_files(candidate: Candidate) -> Failure | None:
    """Refuse files that are not sources, because a build script among them would be executed."""
    strange = [path for path in candidate.texts if PurePosixPath(path).suffix not in SOURCE_SUFFIXES]
    if not strange:
        return None
    message = f"{', '.join(strange)}: expected sources only ({', '.join(sorted(SOURCE_SUFFIXES))})"
    return Failure.of(Status.GUARD_REJECTED, Phase.GUARD, message)


def _options_call(template: str, op_type: str) -> str:
    """Return the beginning of the call that sets compiler options, for the template that msopgen generated.

    Current templates (asc-devkit 9.1) name the target of the kernels (``npu_op_kernel_library``) and take
    options by ``npu_op_kernel_options``; older ones have ``add_ops_compile_options``. Both come first.
    """
    target = _KERNEL_TARGET.search(template)
    if target is not None:
        return f"npu_op_kernel_options({target.group(1)} {op_type}"
    if _OLD_TEMPLATE.search(template):
        return f"add_ops_compile_options({op_type}"
    raise InfrastructureError(
        "op_kernel/CMakeLists.txt of msopgen's project calls neither npu_op_kernel_library nor "
        "add_kernels_compile: its template is not known; please report it with the toolkit's version"
    )


def _header(vendor: Path, function: str) -> str:
    texts = [path.read_text("utf-8", "replace") for path in sorted((vendor / _INCLUDE).glob("aclnn_*.h"))]
    return next((text for text in texts if f"{function}GetWorkspaceSize" in text), "")


def _build_failure(outcome: ProcessOutcome, candidate: Candidate, limit_s: float) -> Failure:
    if outcome.timed_out:
        message = f"building took longer than {limit_s:g} s; make it simpler"
        diagnostic = Diagnostic(phase=Phase.BUILD_KERNEL, message=message)
        return Failure(Status.TIMEOUT, (diagnostic,), outcome.seconds)
    if outcome.exceeded is not None:
        message = f"building exceeded its {outcome.exceeded} limit"
        diagnostic = Diagnostic(phase=Phase.BUILD_KERNEL, message=message)
        return Failure(Status.RESOURCE_LIMIT, (diagnostic,), outcome.seconds)
    text = _with_own_paths((outcome.stdout + outcome.stderr).decode("utf-8", "replace"), candidate)
    sides = ((candidate.host, Phase.BUILD_TILING), (candidate.kernel, Phase.BUILD_KERNEL))
    found = [each for sources, phase in sides for each in parse_compiler_errors(text, sources, phase)]
    located = [each for each in found if each.file]
    if not located and NOT_STARTED.search(text):
        raise InfrastructureError(f"the toolkit's build lacks one of its programs: {_ending(outcome)}")
    if not located:
        message = f"the build failed: {_ending(outcome)}"
        located = [Diagnostic(phase=Phase.BUILD_KERNEL, message=message)]
    return Failure(Status.BUILD_ERROR, tuple(dict.fromkeys(located)), outcome.seconds)


def _with_own_paths(text: str, candidate: Candidate) -> str:
    """Return compiler output with the operator's own paths in place of build paths.

    Host code is compiled in place. Kernels are compiled from copies in folders of the build, so
    only the file name identifies them.
    """
    for file in candidate.host.files:
        text = re.sub(rf"(?m)^\S*/{re.escape(file.path)}(?=:\d+:)", file.path, text)
    own = "|".join(re.escape(file.path) for file in candidate.host.files)
    for file in candidate.kernel.files:
        name = re.escape(Path(file.path).name)
        text = re.sub(rf"(?m)^(?!(?:{own}):)\S*/{name}(?=:\d+:)", file.path, text)
    return text


def _ending(outcome: ProcessOutcome) -> str:
    text = (outcome.stdout + b"\n" + outcome.stderr).decode("utf-8", "replace")
    return " ".join(text.split()[-_SHOWN_WORDS:]) or "it said nothing"
