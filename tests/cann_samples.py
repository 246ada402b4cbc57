"""Outputs of the vendor's tools as documented, written by us: nothing here was recorded on a device."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

NPU_SMI_INFO = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.0                   Version: 24.1.0                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B2               | OK            | 91.3        41                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3375 / 65536         |
+===========================+===============+====================================================+
| 1     910B2               | Alarm         | NA          44                0    / 0             |
| 0                         | 0000:C2:00.0  | 17          0    / 0          9000 / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| No running processes found in NPU 0                                                            |
+===========================+===============+====================================================+
| 1       0                 | 692318        | python3                  | 5630                    |
+===========================+===============+====================================================+
"""
BASIC_COLUMNS = (
    *("Op Name", "Op Type", "Task Duration(us)", "Block Dim", "Mix Block Dim", "Device Id", "Pid"),
    *("Current Freq", "Rated Freq"),
)


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    """Write rows that have the same columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def basic_info(name: str = "AddCustom_0", duration_us: float = 12.5, **cells: object) -> dict[str, object]:
    """Return the row of OpBasicInfo.csv."""
    values = (name, "AI_VECTOR_CORE", duration_us, 2, "N/A", 0, 4711, 1800, 1800)
    return {**dict(zip(BASIC_COLUMNS, values, strict=True)), **cells}


def vector_rows(cores: int = 2, time_us: float = 10.0) -> dict[str, list[dict[str, object]]]:
    """Return the rows of the metrics of a launch on vector cores, by file."""
    tables: dict[str, list[dict[str, object]]] = {}
    for core in range(cores):
        place = {"block_id": core // 2, "sub_block_id": f"vector{core % 2}"}
        common = {"aic_time(us)": "NA", "aic_total_cycles": "NA"}
        own = {"aiv_time(us)": time_us, "aiv_total_cycles": int(time_us * 1800)}
        head = {**place, **common, **own}
        pipes = {f"aiv_{pipe}_time(us)": time_us / 2 for pipe in ("vec", "scalar", "mte2", "mte3")}
        ratios = {f"aiv_{pipe}_ratio": 0.5 for pipe in ("vec", "scalar", "mte2", "mte3")}
        tables.setdefault("PipeUtilization", []).append(
            {**head, "aic_cube_time(us)": "NA", **pipes, **ratios}
        )
        moved = {"GM_to_UB_datas(KB)": 64, "UB_to_GM_datas(KB)": 32, "GM_to_L1_datas(KB)": "NA"}
        counts = {"aiv_mte2_instructions": 8, "aiv_mte3_instructions": 4}
        tables.setdefault("Memory", []).append({**head, **counts, **moved})
        hits = {"aiv_total_hit_rate(%)": 25.0 * core, "aic_total_hit_rate(%)": "NA"}
        tables.setdefault("L2Cache", []).append({**head, **hits})
        tables.setdefault("ResourceConflictRatio", []).append({**head, "aiv_vec_total_cflt_ratio": 0.02})
    return tables


def write_single(folder: Path, info: Mapping[str, object] | None = None) -> Path:
    """Write the output folder of one kernel; return it."""
    output = folder / "OPPROF_20261122010203_ABCDEFGHIJKLMNOP"
    write_csv(output / "OpBasicInfo.csv", [info or basic_info()])
    for metric, rows in vector_rows().items():
        write_csv(output / f"{metric}.csv", rows)
    return output


def write_several(folder: Path, tasks: Sequence[Mapping[str, object]], *, metrics: bool = True) -> Path:
    """Write the output folder of several kernels, rows of OpBasicInfo in the order of launch; return it."""
    output = folder / "OPPROF_20261122010203_QRSTUVWXYZABCDEF"
    counts: dict[str, int] = {}
    for position, info in enumerate(tasks):
        name = str(info["Op Name"])
        index = counts.get(name, 0)
        counts[name] = index + 1
        suffix = f"_20261122010203{position:03d}"
        launch = output / name / str(index)
        write_csv(launch / f"OpBasicInfo{suffix}.csv", [info])
        for metric, rows in vector_rows().items() if metrics else ():
            write_csv(launch / f"{metric}{suffix}.csv", rows)
    return output
