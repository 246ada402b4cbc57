"""Chips as data: the figures of ``chips/*.toml``, each with its source.

A chip names the file of ``chips/base`` that holds what it shares with others, and gives only what differs.
Files of users (``--chip-file``) are of the same format, with a ``name``; their base may be a chip, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from ascend_gym.core.chips import no_such_chip, own_chips
from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import Convention, Record
from ascend_gym.core.text import nearest
from ascend_gym.core.toml_file import read_toml, reason_of
from npu_daemon.simulator.host_request import ChipGeometry
from npu_daemon.simulator.task_type import CoreKind

_FOLDER = Path(__file__).with_name("chips")
_NEXT_TO_NOTHING = 1e-6  # figures are above zero
_SECTIONS = ("geometry", "timing", "cold", "warm", "framework")

_BLOCK_BYTES = 32  # what the sizes of buffers are multiples of
_LEAST_BUFFER_BYTES = 1024  # less is a number of KB
_MOST_TIMES = 50  # of a rate that is known; more is a number of another unit
_MOST_CORES = 1024
_LEAST_CLOCK_MHZ = 50  # less is a number of GHz
_BUFFERS = frozenset(
    f"{buffer}_bytes" for buffer in ("ub", "l1", "l0a", "l0b", "l0c", "bias_table", "fixpipe_buffer")
)

_Sections = dict[str, dict[str, Any]]  # figures as they are written, by section and name


class Figure(Record):
    """One number or name of a chip, and where it comes from."""

    value: float | int | str
    source: str = Field(min_length=1)


class Chip(Record):
    """A chip: what the tiling program may ask for, and what prices instructions."""

    name: str
    geometry: dict[str, Figure]
    timing: dict[str, Figure]
    cold: dict[str, Figure]
    warm: dict[str, Figure]
    framework: dict[str, Figure]
    launches: int = 1

    @property
    def digest(self) -> str:
        """Identity of the values; sources may be reworded freely."""
        sections = (self.geometry, self.timing, self.cold, self.warm, self.framework)
        return digest_of(
            "chip", self.name, self.launches, [{k: f.value for k, f in each.items()} for each in sections]
        )

    def under(self, convention: Convention) -> Chip:
        """Return the chip as a launch finds it; files have the figures of ``l2-cold``."""
        if convention is Convention.COLD:
            return self.model_copy(update={"timing": {**self.timing, **self.cold}})
        if convention is Convention.WARM:
            return self.with_code_loaded().model_copy(update={"launches": 2})
        return self

    def with_code_loaded(self) -> Chip:
        """Return the chip for a launch right after one of the same kernel: its cores hold the code."""
        return self.model_copy(update={"timing": {**self.timing, **self.warm}})

    @property
    def clock_hz(self) -> float:
        """Core cycles per second."""
        return float(self.timing["clock_mhz"].value) * 1e6

    @property
    def ub_bytes(self) -> int:
        """Unified buffer of a vector core in bytes; the tiling program is told 256 fewer."""
        return self._bytes("ub_bytes")

    def core_lines(self) -> list[str]:
        """Return the ``name value`` lines by which the run program learns cores and their memories."""
        names = ("aiv_cores", "aic_cores", "ub_bytes", "l1_bytes", "l0a_bytes", "l0b_bytes", "l0c_bytes")
        return [
            f"{name} {self._bytes(name)}" for name in (*names, "bias_table_bytes", "fixpipe_buffer_bytes")
        ]

    def tiling_geometry(self, kinds: Collection[CoreKind] = (CoreKind.VECTOR,)) -> ChipGeometry:
        """Return what ``platform_ascendc::PlatformAscendC`` answers to a kernel built for ``kinds``.

        ``GetCoreNum`` counts AI cores for kernels with a part on the cube cores, else vector cores, as
        ``fe::PlatFormInfos::SetCoreNumByCoreType`` does in CANN's published sources.
        """
        return ChipGeometry(
            soc_version=str(self.geometry["soc_version"].value),
            aic_cores=self._bytes("aic_cores"),
            aiv_cores=self._bytes("aiv_cores"),
            ub_bytes=self.ub_bytes,
            l1_bytes=self._bytes("l1_bytes"),
            l0a_bytes=self._bytes("l0a_bytes"),
            l0b_bytes=self._bytes("l0b_bytes"),
            l0c_bytes=self._bytes("l0c_bytes"),
            l2_bytes=self._bytes("l2_bytes"),
            core_num=self._bytes("aic_cores" if CoreKind.CUBE in kinds else "aiv_cores"),
        )

    def pricing_text(self) -> str:
        """Return the flat ``name value`` lines that the pricing program reads."""
        values = {name: figure.value for name, figure in self.timing.items()}
        values |= {
            name: self.geometry[name].value for name in ("aiv_cores", "aic_cores", "l2_bytes", "icache_bytes")
        }
        values["launches"] = self.launches
        return "".join(f"{name} {value}\n" for name, value in sorted(values.items()))

    def _bytes(self, name: str) -> int:
        return int(self.geometry[name].value)


def chip_names() -> list[str]:
    """Return the names of all chips: ours, then those of users' files."""
    return [*_shipped(), *own_chips()]


def shipped_digests() -> list[str]:
    """Return the identities of our chips; a file that is broken counts by its text, and stops no other."""
    return [_identity(name) for name in _shipped()]


@cache
def load_chip(name: str) -> Chip:
    """Return the chip of that name, for example ``910B2``.

    Raises:
        MisuseError: there is no such chip, and the message lists those that exist; or a figure of its file is
            missing, not known, or impossible.
    """
    if name not in chip_names():
        raise MisuseError(no_such_chip(name, chip_names()))
    path = own_chips().get(name, _FOLDER / f"{name}.toml")
    sections = _sections(path)
    _check(path, sections)
    return Chip.model_validate({"name": name, **sections})


def _shipped() -> list[str]:
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def _identity(name: str) -> str:
    try:
        return load_chip(name).digest
    except MisuseError:
        return digest_of("broken chip", (_FOLDER / f"{name}.toml").read_text("utf-8"))


def _sections(path: Path) -> _Sections:
    """Return the figures of a chip, or of a base, with what its own base holds."""
    try:
        content = read_toml(path)
    except (OSError, ValueError) as error:
        raise MisuseError(f"chip file {path} cannot be read: {error}") from error
    if unknown := content.keys() - {"name", "base", *_SECTIONS}:
        first = min(unknown)
        raise MisuseError(
            f"chip file {path}: unknown section {first!r}{nearest(first, _SECTIONS)}; there are: "
            f"{', '.join(_SECTIONS)}"
        )
    shared = _sections(_base(path, content["base"])) if "base" in content else {}
    return {section: {**shared.get(section, {}), **content.get(section, {})} for section in _SECTIONS}


def _base(path: Path, name: object) -> Path:
    """Return the file of a base: one of ``chips/base``, or a chip of ours."""
    files = {file.stem: file for file in (*_FOLDER.glob("base/*.toml"), *_FOLDER.glob("*.toml"))}
    if name not in files:
        raise MisuseError(
            f"chip file {path}: no base is named {name!r}; there are: {', '.join(sorted(files))}"
        )
    return files[str(name)]


@cache
def _known_figures() -> _Sections:
    """Return the figures of one of our chips as examples: all chips have the same."""
    return _sections(_FOLDER / "910B2.toml")


def _check(path: Path, sections: _Sections) -> None:
    """Raise ``MisuseError`` unless the figures are those that every chip has, each of a possible value."""
    known = _known_figures()
    for section in _SECTIONS:
        examples = {**(known["timing"] if section in ("cold", "warm") else {}), **known[section]}
        for name, figure in sections[section].items():
            where = f"chip file {path}: {section}.{name}"
            if name not in examples:
                raise MisuseError(f"{where} is no figure of {_hint(section, name, examples)}")
            value = _figure(where, figure).value
            _check_value(where, value, examples[name]["value"])
            _check_unit(where, name, value)
        if missing := sorted(known[section].keys() - sections[section].keys()):
            raise MisuseError(
                f"chip file {path}: {section} lacks {', '.join(missing)}; or name a base with them"
            )
    _check_cores(path, sections["geometry"])


def _figure(where: str, written: object) -> Figure:
    expected = 'expected { value = ..., source = "..." }'
    if not isinstance(written, dict):
        raise MisuseError(f"{where}: {expected}, got {written!r}")
    if unknown := written.keys() - Figure.model_fields.keys():
        key = min(unknown)
        raise MisuseError(f"{where}: unknown key {key!r}{nearest(key, Figure.model_fields)}; {expected}")
    try:
        return Figure.model_validate(written)
    except ValidationError as error:
        raise MisuseError(f"{where}: {expected}: {reason_of(error)}") from error


def _check_cores(path: Path, geometry: dict[str, Any]) -> None:
    """Raise ``MisuseError`` unless each cube core has two vector cores (docs/hardware.md section 1)."""
    cubes, vectors = (geometry[name]["value"] for name in ("aic_cores", "aiv_cores"))
    if vectors > _MOST_CORES:
        raise MisuseError(
            f"chip file {path}: geometry: expected at most {_MOST_CORES} vector cores, got {vectors}; "
            "a 910B2 has 48"
        )
    if vectors != 2 * cubes:
        raise MisuseError(
            f"chip file {path}: geometry: aiv_cores is {vectors} and aic_cores {cubes}; expected two vector "
            f"cores for each cube core, as kernels on both are built for: {2 * cubes} and {cubes}"
        )


def _check_value(where: str, value: float | int | str, example: float | int | str) -> None:
    if isinstance(example, str):
        if not isinstance(value, str) or not value.strip():
            raise MisuseError(f"{where}: expected a name such as {example!r}, got {value!r}")
    elif isinstance(value, (str, bool)) or not 0 < value < math.inf:
        raise MisuseError(f"{where}: expected a number above 0 such as {example}, got {value!r}")
    elif where.rpartition(" ")[2].startswith("geometry.") and not isinstance(value, int):
        raise MisuseError(f"{where}: expected a whole number such as {example}, got {value!r}")


def _hint(section: str, name: str, examples: dict[str, Any]) -> str:
    """Return whose figure ``name`` is not, and where it belongs or which name is near."""
    for other, figures in _known_figures().items():
        if name in figures:
            return f"[{section}]; it belongs in [{other}]"
    return f"a chip{nearest(name, list(examples))}"


def _check_unit(where: str, name: str, value: float | int | str) -> None:
    """Raise ``MisuseError`` where a figure is in another unit: rates, clocks, sizes of buffers."""
    known = next((figures[name]["value"] for figures in _known_figures().values() if name in figures), None)
    if (
        name.endswith("_gb_per_s")
        and not 1 / _MOST_TIMES <= float(value) / float(known or value) <= _MOST_TIMES
    ):
        raise MisuseError(
            f"{where}: expected GB/s such as {known}, from 1/{_MOST_TIMES} to {_MOST_TIMES} times that, got "
            f"{value}; is it in TB/s, or in bytes per second?"
        )
    if name == "clock_mhz" and float(value) < _LEAST_CLOCK_MHZ:
        raise MisuseError(
            f"{where}: expected MHz such as 1800, at least {_LEAST_CLOCK_MHZ}, got {value}; is it in GHz?"
        )
    if name in _BUFFERS and (int(value) < _LEAST_BUFFER_BYTES or int(value) % _BLOCK_BYTES != 0):
        raise MisuseError(
            f"{where}: expected bytes such as {_known_figures()['geometry'][name]['value']}: a multiple of "
            f"{_BLOCK_BYTES} and at least {_LEAST_BUFFER_BYTES}, got {value}"
        )
