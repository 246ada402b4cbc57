"""What a record of a host leaves out."""

from cann_samples import NPU_SMI_INFO
from hypothesis import given
from hypothesis import strategies as st

from npu_daemon.cann.recording import scrubbed

WHO = ("ada", "/home/ada", ("npu-host-7", "npu-host-7.example.org"))


def test_names_addresses_and_serial_numbers_are_replaced():
    text = (
        "/home/ada/Ascend/cann by ada on NPU-HOST-7.example.org (npu-host-7) 192.168.0.12 00:1B:44:11:3A:B7 "
        "fe80::1ff:fe23:4567:890a ada@example.org\nSerial Number : 2102312NRT10\n"
    )
    assert scrubbed(text, *WHO) == (
        "~/Ascend/cann by <user> on <host> (<host>) <address> <address> <address> <user>@example.org\n"
        "Serial Number : <serial>\n"
    )


def test_what_a_maintainer_needs_stays():
    text = "cmake version 3.22.1, adapter 0000:C1:00.0 at 12:30:45, adam_w, Ascend::Add"
    assert scrubbed(text, *WHO) == text


def test_processes_lose_number_and_name_and_devices_keep_theirs():
    found = scrubbed(NPU_SMI_INFO, *WHO)
    assert "692318" not in found
    assert "python3" not in found
    assert found.count("910B2") == 2
    assert "No running processes found in NPU 0" in found


@given(st.text(alphabet="abc .:/-\n", max_size=40), st.text(alphabet="abc .:/-\n", max_size=40))
def test_no_text_around_a_name_keeps_it(before, after):
    found = scrubbed(f"{before} ada {after} npu-host-7 {before}", *WHO)
    assert " ada " not in found
    assert "npu-host-7" not in found


def test_the_user_root_is_an_ordinary_word():
    assert scrubbed("root of the tree", "root", "/root", ("localhost",)) == "root of the tree"
