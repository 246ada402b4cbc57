"""Reading npu-smi info."""

from __future__ import annotations

import pytest
from cann_samples import NPU_SMI_INFO
from hypothesis import given
from hypothesis import strategies as st

from npu_daemon.cann.devices import NpuSmiFormatError, parse_info


def test_devices_health_and_processes() -> None:
    first, second = parse_info(NPU_SMI_INFO)
    assert (first.device, first.npu, first.chip, first.name, first.healthy) == (0, 0, 0, "910B2", True)
    assert (second.health, second.healthy) == ("Alarm", False)
    assert (first.pids, second.pids) == ((), (692318,))


def test_two_chips_on_a_card_are_two_devices() -> None:
    text = NPU_SMI_INFO.replace("| 1     910B2 ", "| 0     910_93").replace(
        "| 0                         | 0000:C2", "| 1     1                   | 0000:C2"
    )
    assert [(each.device, each.npu, each.chip) for each in parse_info(text)] == [(0, 0, 0), (1, 0, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bash: npu-smi: command not found",
        "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\ndcmi module initialize failed. ret is -8005",
        NPU_SMI_INFO.replace("| OK            |", "| FINE          |"),
        NPU_SMI_INFO.replace("| 0     910B2  ", "| zero  910B2  "),
        "\n".join(line for line in NPU_SMI_INFO.splitlines() if "C1:00.0" not in line),
    ],
)
def test_something_else_is_refused(text: str) -> None:
    with pytest.raises(NpuSmiFormatError):
        parse_info(text)


@given(st.integers(0, len(NPU_SMI_INFO)), st.integers(0, 60), st.text("|0 aK\n", max_size=5))
def test_damaged_output_is_read_or_refused(start: int, length: int, put: str) -> None:
    damaged = NPU_SMI_INFO[:start] + put + NPU_SMI_INFO[start + length :]
    try:
        devices = parse_info(damaged)
    except NpuSmiFormatError:
        return
    assert [each.device for each in devices] == list(range(len(devices)))
    assert all(each.name for each in devices)
