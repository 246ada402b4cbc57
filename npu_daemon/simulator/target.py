"""What kernel writers should know of a chip, out of its description and the table of instructions."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from ascend_gym.core.records import CopyCost, CubeCost, LaunchCost, ScalarCost, TargetSheet, VectorRate
from npu_daemon.simulator.chips import Chip, load_chip

_INSTRUCTIONS = Path(__file__).with_name("include") / "asim" / "trace" / "instructions.def"
_QUEUES = Path(__file__).with_name("src") / "runtime" / "queue.cpp"
_QUEUE_CALL = re.compile(
    r"^constexpr uint32_t k(?:Allocate|Enqueue|Dequeue|Release)Accesses = (\d+);", re.MULTILINE
)
_DATA_CACHE = Path(__file__).with_name("include") / "asim" / "timing" / "data_cache.h"
_DATA_CACHE_SIZE = re.compile(r"kLineBytes = (\d+), kLines = (\d+)")
_INSTRUCTION = re.compile(
    r"^(?:INSTRUCTION\((?=\w+, V, )|ELEMENTWISE\()(\w+), \w+, (\w+), \w+\b", re.MULTILINE
)
_WORD = re.compile(r"(?<!^)(?=[A-Z])")
_EVENT_IDS = 8
_UB_KEPT_BYTES = 256  # what PlatformAscendC reports less than the unified buffer has
_LINE_INSTRUCTIONS, _UNIT_INSTRUCTIONS = (
    16,
    512,
)  # of code: lines of 64 B, fetched in units of 2 KiB (core.cpp)
_LAUNCHES = (1, 8, 16, 24, 32)


@cache
def target_sheet(chip_name: str, *, starts_with_empty_l2: bool | None = None) -> TargetSheet:
    """Return the facts about a chip, and whether whoever asks measures with an empty L2.

    Raises:
        MisuseError: there is no such chip.
    """
    chip = load_chip(chip_name)
    return TargetSheet(
        chip=chip.name,
        clock_mhz=_timing(chip, "clock_mhz"),
        event_ids=_EVENT_IDS,
        queue_depth=int(_timing(chip, "queue_depth")),
        ub_reserved_bytes=_UB_KEPT_BYTES,
        launches=tuple(_launch(chip, blocks) for blocks in _launch_sizes(chip)),
        vector_start_cycles=_timing(chip, "vector_start_cycles"),
        function_start_cycles=_timing(chip, "transcendental_start_cycles"),
        vector_issue_cycles=_timing(chip, "vector_issue_cycles"),
        vector_rates=_vector_rates(chip),
        copies=_copies(chip),
        scalar=_scalar(chip),
        cube=_cube(chip),
        starts_with_empty_l2=starts_with_empty_l2,
        elementwise_call_us=float(chip.framework["elementwise_us"].value),
        combining_call_us=float(chip.framework["combining_us"].value),
        **{name: _size(chip, name) for name in ("aiv_cores", "aic_cores", "l2_bytes")},
        **{f"{name}_bytes": _size(chip, f"{name}_bytes") for name in ("ub", "l1", "l0a", "l0b", "l0c")},
    )


def instruction_groups() -> dict[str, tuple[str, ...]]:
    """Return the vector instructions of each cost group with rates, by its name in chip descriptions."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, group in _INSTRUCTION.findall(_INSTRUCTIONS.read_text(encoding="utf-8")):
        groups[_WORD.sub("_", group).lower()].append(name)
    return {group: tuple(names) for group, names in groups.items() if group != "register"}


def _launch_sizes(chip: Chip) -> list[int]:
    """Return some numbers of blocks, up to those of all cores of a kind."""
    cube_cores, vector_cores = _size(chip, "aic_cores"), _size(chip, "aiv_cores")
    return sorted({*(blocks for blocks in _LAUNCHES if blocks < vector_cores), cube_cores, vector_cores})


def _launch(chip: Chip, blocks: int) -> LaunchCost:
    """Return what the pricing program takes for empty blocks, at most one a core (``engine.cpp``)."""
    on_cubes = blocks <= _size(chip, "aic_cores")
    return LaunchCost(
        blocks=blocks,
        vector_us=_empty_us(chip, blocks, vectors=1),
        cube_us=_empty_us(chip, blocks, cubes=1) if on_cubes else None,
        mixed_us=_empty_us(chip, blocks, cubes=1, vectors=2) if on_cubes else None,
    )


def _empty_us(chip: Chip, blocks: int, *, cubes: int = 0, vectors: int = 0) -> float:
    """Return what so many blocks take, each on so many cores of both kinds, which start together."""
    cube_us, vector_us = _timing(chip, "launch_per_cube_us"), _timing(chip, "launch_per_block_us")
    head_us = _timing(chip, "launch_us") + blocks * max(cubes * cube_us, vectors * vector_us)
    cores = cubes + vectors
    fetch_us = blocks * cores * _timing(chip, "block_fetch_us")
    last_us = (blocks - 1) * cores * _timing(chip, "block_stagger_us") + fetch_us
    return round(head_us + last_us + _timing(chip, "block_start_us"), 2)


def _vector_rates(chip: Chip) -> tuple[VectorRate, ...]:
    return tuple(
        VectorRate(
            group=group,
            instructions=names,
            elems_16bit=_timing(chip, f"{group}_16bit"),
            elems_32bit=_timing(chip, f"{group}_32bit"),
        )
        for group, names in instruction_groups().items()
    )


def _copies(chip: Chip) -> CopyCost:
    return CopyCost(
        hbm_gb_per_s=_timing(chip, "hbm_gb_per_s"),
        hbm_reached_share=_timing(chip, "hbm_reached_share"),
        l2_gb_per_s=_timing(chip, "l2_gb_per_s"),
        core_hbm_bytes_per_cycle=_timing(chip, "hbm_core_bytes_per_cycle"),
        core_l2_bytes_per_cycle=_timing(chip, "l2_core_bytes_per_cycle"),
        core_write_bytes_per_cycle=_timing(chip, "write_core_bytes_per_cycle"),
        write_yield=_timing(chip, "write_yield"),
        write_buffer_bytes=_timing(chip, "write_buffer_bytes"),
        start_cycles=_timing(chip, "copy_start_cycles"),
        burst_cycles=_timing(chip, "burst_cycles"),
        odd_row_cycles=_timing(chip, "odd_burst_cycles"),
        off_grid_factor=_timing(chip, "off_grid_factor"),
        read_latency_cycles=_timing(chip, "mte2_latency_cycles"),
        l2_latency_cycles=_timing(chip, "mte2_l2_latency_cycles"),
        write_latency_cycles=_timing(chip, "mte3_latency_cycles"),
        line_bytes=int(_timing(chip, "l2_line_bytes")),
    )


def _scalar(chip: Chip) -> ScalarCost:
    return ScalarCost(
        access_cycles=_timing(chip, "scalar_load_cycles"),
        next_access_cycles=_timing(chip, "scalar_access_cycles"),
        store_cycles=_timing(chip, "scalar_store_cycles"),
        global_access_cycles=_timing(chip, "scalar_access_cycles"),
        global_miss_cycles=_timing(chip, "scalar_gm_miss_cycles"),
        global_stream_cycles=_timing(chip, "scalar_gm_stream_cycles"),
        data_cache_bytes=_data_cache_bytes(),
        instruction_cycles=_timing(chip, "scalar_integer_cycles"),
        float_cycles=_timing(chip, "scalar_float_cycles"),
        convert_cycles=_timing(chip, "scalar_convert_cycles"),
        float_divide_cycles=_timing(chip, "scalar_float_divide_cycles"),
        queue_cycles=_queue_accesses() * _timing(chip, "scalar_queue_cycles"),
        fetch_cycles=_timing(chip, "code_line_cycles") / _LINE_INSTRUCTIONS
        + _timing(chip, "code_unit_cycles") / _UNIT_INSTRUCTIONS,
        fetch_turn_cycles=_timing(chip, "code_turn_cycles") / _UNIT_INSTRUCTIONS,
        flag_cycles=_timing(chip, "flag_cycles"),
        barrier_cycles=_timing(chip, "barrier_cycles"),
        vector_barrier_cycles=_timing(chip, "flag_cycles"),
        sync_all_cycles=_timing(chip, "sync_all_cycles"),
    )


def _queue_accesses() -> int:
    """Return the loads and stores of the four calls for one buffer."""
    return sum(map(int, _QUEUE_CALL.findall(_QUEUES.read_text(encoding="utf-8"))))


def _data_cache_bytes() -> int:
    """Return the size of the scalar unit's data cache."""
    ((line_bytes, lines),) = _DATA_CACHE_SIZE.findall(_DATA_CACHE.read_text(encoding="utf-8"))
    return int(line_bytes) * int(lines)


def _cube(chip: Chip) -> CubeCost:
    return CubeCost(
        start_cycles=_timing(chip, "mmad_start_cycles"),
        depth_8bit=_timing(chip, "mmad_depth_8bit"),
        depth_16bit=_timing(chip, "mmad_depth_16bit"),
        depth_32bit=_timing(chip, "mmad_depth_32bit"),
        l1_l0a_bytes_per_cycle=_timing(chip, "l1_l0a_bytes_per_cycle"),
        l1_l0b_bytes_per_cycle=_timing(chip, "l1_l0b_bytes_per_cycle"),
        l0_start_cycles=_timing(chip, "l0_copy_start_cycles"),
        l0c_gm_bytes_per_cycle=_timing(chip, "fixpipe_core_bytes_per_cycle"),
        gm_write_bytes_per_cycle=_timing(chip, "fixpipe_gm_bytes_per_cycle"),
        core_hbm_bytes_per_cycle=_timing(chip, "cube_hbm_core_bytes_per_cycle"),
        core_l2_bytes_per_cycle=_timing(chip, "cube_l2_core_bytes_per_cycle"),
        row_cycles=_timing(chip, "cube_row_cycles"),
    )


def _timing(chip: Chip, name: str) -> float:
    return float(chip.timing[name].value)


def _size(chip: Chip, name: str) -> int:
    return int(chip.geometry[name].value)
