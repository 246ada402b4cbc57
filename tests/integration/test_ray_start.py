"""A Ray that does not start, or is not there, is told in one line with what to do."""

import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from daemon_processes import PYTHONPATH

from ascend_gym.core.config import child_environment
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.sweep.ray_executor import begin_ray
from ascend_gym.sweep.ray_process import RayProcess

if find_spec("ray") is None:  # not importorskip: Ray reads its settings when it is imported
    pytest.skip("needs the extra sweep", allow_module_level=True)

# Ray waits 30 s for its node to register, and then raises a bare Exception. Here no node ever does, and a
# second lasts a thousandth.
NODE_NEVER_REGISTERS = """
import time
from types import SimpleNamespace
from ascend_gym.core.config import set_up_own_ray
from ascend_gym.core.errors import InfrastructureError
from ascend_gym.sweep.ray_executor import connected_ray
set_up_own_ray()
import ray._private.node as node
import ray._private.services as services
def unknown(*_, **__):
    raise RuntimeError("no such node")
services.get_node = unknown
node.time = SimpleNamespace(**{**vars(time), "monotonic": lambda: time.monotonic() * 1000})
try:
    with connected_ray("local", 1):
        print("started")
except InfrastructureError as error:
    print(type(error.__cause__), error, sep="\\n")
"""


def test_a_start_that_times_out_is_told_in_one_line(monkeypatch):
    monkeypatch.setenv("RAY_gcs_server_port_wait_time_s", "0")
    with pytest.raises(InfrastructureError) as refused:
        RayProcess("local", 1)
    (said,) = str(refused.value).splitlines()
    assert said.startswith("Ray should start on this host, but did not: Timed out")
    assert said.endswith("try again later or with fewer processes")


def test_a_node_that_does_not_register_is_told_in_one_line():
    ended = subprocess.run(
        [sys.executable, "-c", NODE_NEVER_REGISTERS],
        env=child_environment(PYTHONPATH=PYTHONPATH),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    cause, said = ended.stdout.splitlines()
    assert cause == "<class 'Exception'>", ended.stderr
    assert said.startswith("Ray should start on this host, but did not: The current node timed out")
    assert "; where the host is busy" in said


def test_an_address_without_a_cluster_is_told_with_what_to_do():
    def init(**_):
        raise ConnectionError("Failed to connect\nto Ray cluster.")

    with pytest.raises(InfrastructureError) as refused:
        begin_ray(SimpleNamespace(init=init), "127.0.0.1:9")
    assert str(refused.value) == (
        "expected a Ray cluster at '127.0.0.1:9', and found none: Failed to connect to Ray cluster; "
        "start one there with 'ray start --head', or give the address of one that runs"
    )
