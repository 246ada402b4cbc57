"""Three Ray nodes on this host: placement by resource, a node that leaves, one that joins."""

import os
from importlib.util import find_spec

import pytest
from daemon_processes import PYTHONPATH
from sweeping import Swept, make_job, unbroken_journals

from ascend_gym.core.config import set_up_own_ray
from ascend_gym.sweep.executors import LocalExecutor
from ascend_gym.sweep.ray_executor import RESOURCE, RayExecutor, connected_ray
from ascend_gym.sweep.ray_process import RayProcess

if find_spec("ray") is None:  # not importorskip: Ray reads its settings when it is imported
    pytest.skip("needs the extra sweep", allow_module_level=True)

set_up_own_ray()

OBJECT_STORE_BYTES = 80 * 2**20
NOTICE_DEAD_NODES = {
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 4,
    "gcs_rpc_server_reconnect_timeout_s": 5,
}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    return unbroken_journals(tmp_path_factory.mktemp("unbroken"), range(3))


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)  # workers import fake_sweep_child
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "object_store_memory": OBJECT_STORE_BYTES, "_system_config": NOTICE_DEAD_NODES}
    opened = Cluster(initialize_head=True, head_node_args=head)
    yield opened
    opened.shutdown()


def test_a_sweep_whose_head_dies_ends_with_what_it_has(tmp_path, cluster, unbroken):
    """Ray ends what is connected to a head that is gone: that is not the driver of the sweep."""
    _node(cluster)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def kill_head(update):
        if update.steps and update.job_id == waiting.job_id:
            cluster.head_node.kill_gcs_server()

    waiting = make_job(1, wait=str(fifo))
    executor = RayProcess(cluster.address, 0)
    try:
        sweep = Swept(tmp_path / "sweep", [make_job(0), waiting], executor, on_update=kill_head).run()
    finally:
        executor.close()
    assert sweep.endings() == ["finished", "infrastructure"]
    assert "the Ray cluster is gone" in sweep.state.jobs[waiting.job_id].end.message
    whole, part_of_it = sweep.journals()
    assert whole == unbroken[0]
    assert unbroken[1].startswith(part_of_it)
    assert [job.job_id for job in sweep.ended][-1] == waiting.job_id
    fifo.unlink()
    again = Swept(tmp_path / "sweep", [make_job(0), waiting], LocalExecutor(1)).run()
    assert again.journals() == unbroken[:2]


def _node(cluster):
    return cluster.add_node(num_cpus=1, resources={RESOURCE: 1}, object_store_memory=OBJECT_STORE_BYTES)


def test_a_node_leaves_another_joins_and_every_run_ends(tmp_path, cluster, unbroken):
    """Each node takes one run; the runs of a node that is killed are made by those that are left."""
    leaving = _node(cluster)
    fifo, told = tmp_path / "fifo", {}
    os.mkfifo(fifo)

    def change_nodes(update):
        if update.steps:
            told.setdefault(update.job_id, []).append(update.host)
        if fifo.exists() and update.steps:
            cluster.remove_node(leaving, allow_graceful=False)
            fifo.unlink()
            _node(cluster)
            _node(cluster)

    with connected_ray(cluster.address, 0) as ray:
        executor = RayExecutor(ray)
        jobs = [make_job(0, wait=str(fifo)), make_job(1), make_job(2)]
        sweep = Swept(tmp_path / "sweep", jobs, executor, on_update=change_nodes).run()
        executor.close()
    assert sweep.journals() == unbroken
    assert sweep.state.jobs[jobs[0].job_id].attempt > 1
    first_hosts = set(told[jobs[0].job_id][:1])
    assert all(first_hosts.isdisjoint(told[job.job_id]) for job in jobs[1:]), "one run a node"
