"""Chips as data: the figures of ``chips/*.toml``, each with its source.

A chip names the file of ``chips/base`` that holds what it shares with others, and gives only what differs.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path

from pydantic import Field

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError
from ascend_gym.core.records import Record
from ascend_gym.core.toml_file import read_toml
from npu_daemon.simulator.host_request import ChipGeometry
from npu_daemon.simulator.task_type import CoreKind

_FOLDER = Path(__file__).with_name("chips")


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
    framework: dict[str, Figure]

    @property
    def digest(self) -> str:
        """Identity of the values; sources may be reworded freely."""
        sections = (self.geometry, self.timing, self.cold, self.framework)
        return digest_of("chip", self.name, [{k: f.value for k, f in each.items()} for each in sections])

    def when_cold(self) -> Chip:
        """Return the chip for the first launch of a kernel, which nothing has been loaded for.

        All other launches find the code in L2; published figures are taken so, after a warm-up.
        """
        return self.model_copy(update={"timing": {**self.timing, **self.cold}})

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
        values |= {name: self.geometry[name].value for name in ("aiv_cores", "aic_cores", "l2_bytes")}
        return "".join(f"{name} {value}\n" for name, value in sorted(values.items()))

    def _bytes(self, name: str) -> int:
        return int(self.geometry[name].value)


def chip_names() -> list[str]:
    """Return the names of all chips."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


@cache
def load_chip(name: str) -> Chip:
    """Return the chip of that name, for example ``910B2``.

    Raises:
        MisuseError: there is no such chip; the message lists those that exist.
    """
    if name not in chip_names():
        raise MisuseError(f"no chip is named {name!r}; there are: {', '.join(chip_names())}")
    differences = read_toml(_FOLDER / f"{name}.toml")
    shared = read_toml(_FOLDER / "base" / f"{differences['base']}.toml")
    sections = {
        section: {**shared[section], **differences.get(section, {})}
        for section in ("geometry", "timing", "cold", "framework")
    }
    return Chip.model_validate({"name": name, **sections})
