"""The answer of the pricing program: a profile in the field names of msprof, and samples of the latency."""

from __future__ import annotations

import math
import random
from typing import Any

from ascend_gym.core.cpp_text import without_comments
from ascend_gym.core.digest import digest_of
from ascend_gym.core.records import Candidate, Case, CoreTimes, MeasureProtocol, Profile, ScalarTimes
from npu_daemon.simulator.chips import Chip

_AIV_PIPES = ("vec", "scalar", "mte2", "mte3")
_AIC_PIPES = ("mac", "scalar", "mte1", "mte2", "fixpipe")


def profile_of(price: dict[str, Any], block_dim: int, chip: Chip) -> Profile:
    """Build the profile of one launch.

    Args:
        price: JSON of the pricing program: kind, cycles, instructions and bytes of each core.
        block_dim: number of blocks launched.
        chip: gives the clock.

    Times are means over the cores of a kind that ran blocks, in microseconds; ratios are sums over sums,
    as in msprof. A kind of core that did not run has zeros.
    """
    vector = [core for core in price["cores"] if core["kind"] == "aiv"]
    cube = [core for core in price["cores"] if core["kind"] == "aic"]
    return Profile(
        task_duration_us=float(price["task_us"]),
        block_dim=block_dim,
        gm_to_ub_bytes=_total(vector, "read_bytes"),
        ub_to_gm_bytes=_total(vector, "written_bytes"),
        aiv_mte2_instructions=_total(vector, "mte2_instructions"),
        aiv_mte3_instructions=_total(vector, "mte3_instructions"),
        aiv_vec_instructions=_total(vector, "vec_instructions"),
        gm_to_l1_bytes=_total(cube, "read_bytes"),
        l0c_to_gm_bytes=_total(cube, "written_bytes"),
        aic_mac_instructions=_total(cube, "mac_instructions"),
        **_pipe_fields("aiv", vector, _AIV_PIPES, chip),
        **_pipe_fields("aic", cube, _AIC_PIPES, chip),
    )


def core_times_of(price: dict[str, Any], chip: Chip) -> CoreTimes:
    """Return what the profile's means leave out; how long the scalar unit waits is not known."""
    waits: dict[str, float] = {}
    for kind, pipes in (("aiv", _AIV_PIPES), ("aic", _AIC_PIPES)):
        cores = [core for core in price["cores"] if core["kind"] == kind]
        total_cycles = sum(core["total_cycles"] for core in cores)
        for pipe in pipes:
            waited_cycles = sum(core[f"{pipe}_wait_cycles"] for core in cores)
            if pipe != "scalar" and total_cycles > 0:
                waits[f"{kind}_{pipe}_wait_ratio"] = round(waited_cycles / total_cycles, 4)
    slowest_cycles = max(core["total_cycles"] for core in price["cores"])
    return CoreTimes(
        slowest_us=slowest_cycles / chip.clock_hz * 1e6,
        wait_ratios=waits,
        bank_conflict_ratios=_bank_conflict_ratios(price),
        scalar=_scalar_times(price["cores"], chip),
    )


def _scalar_times(cores: list[dict[str, Any]], chip: Chip) -> dict[str, ScalarTimes]:
    """Return what the scalar units did, by kind of core; nothing where the price does not tell."""
    told: dict[str, ScalarTimes] = {}
    for kind in ("aiv", "aic"):
        works = [core["scalar_work"] for core in cores if core["kind"] == kind and "scalar_work" in core]
        if not works:
            continue
        of_kind = [core for core in cores if core["kind"] == kind]
        waited_us = _mean_us(of_kind, "total_cycles", chip) - _mean_us(of_kind, "scalar_cycles", chip)
        parts = ("fetch", "code", "queue", "access", "issue", "order")
        told[kind] = ScalarTimes(
            fetched_instructions=round(sum(each["fetched_instructions"] for each in works) / len(works)),
            wait_us=round(max(0.0, waited_us), 4),
            **{f"{part}_us": round(_mean_us(works, f"{part}_cycles", chip), 4) for part in parts},
        )
    return told


def _bank_conflict_ratios(price: dict[str, Any]) -> dict[str, float]:
    """Return the share of vector core time that each instruction loses to bank conflicts, where it is any."""
    total_cycles = sum(core["total_cycles"] for core in price["cores"] if core["kind"] == "aiv")
    lost = {name: cycles["lost_cycles"] / total_cycles for name, cycles in price["bank_conflicts"].items()}
    return {name: round(ratio, 4) for name, ratio in lost.items() if round(ratio, 4) > 0}


def _pipe_fields(
    kind: str, cores: list[dict[str, Any]], pipes: tuple[str, ...], chip: Chip
) -> dict[str, Any]:
    time_us = _mean_us(cores, "total_cycles", chip)
    fields: dict[str, Any] = {
        f"{kind}_time": time_us,
        f"{kind}_total_cycles": _total(cores, "total_cycles"),
    }
    for pipe in pipes:
        pipe_us = _mean_us(cores, f"{pipe}_cycles", chip)
        fields[f"{kind}_{pipe}_time"] = pipe_us
        fields[f"{kind}_{pipe}_ratio"] = pipe_us / time_us if time_us > 0 else 0.0
    return fields


def _mean_us(cores: list[dict[str, Any]], field: str, chip: Chip) -> float:
    return float(sum(core[field] for core in cores)) / max(len(cores), 1) / chip.clock_hz * 1e6


def _total(cores: list[dict[str, Any]], field: str) -> int:
    return int(sum(core[field] for core in cores))


def samples_us(
    latency_us: float, candidate: Candidate, case: Case, protocol: MeasureProtocol
) -> tuple[float, ...]:
    """Return ``protocol.repeats`` samples of a latency.

    With ``protocol.noise`` they are log-normal about it, so that half of them are slower. Noise belongs to
    case, seed, position and the code of the candidate: another comment or line break draws no other samples.
    Without, all samples are the latency.

    Args:
        latency_us: what the pricing model computed.
        candidate: what was priced.
        case: what it was priced on.
        protocol: number of samples, spread and seed.
    """
    if protocol.noise == 0:
        return (latency_us,) * protocol.repeats
    identity = digest_of("noise", protocol.noise_seed, _bare_code(candidate), case.case_id)
    source = random.Random(int(identity[:16], 16))
    return tuple(latency_us * math.exp(source.gauss(0.0, protocol.noise)) for _ in range(protocol.repeats))


def _bare_code(candidate: Candidate) -> dict[str, str]:
    """Return the sources by path without comments and white space."""
    return {path: "".join(without_comments(text).split()) for path, text in candidate.texts.items()}
