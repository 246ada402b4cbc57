"""A daemon's status as Prometheus metrics, over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ascend_gym.core.errors import InfrastructureError, MisuseError
from ascend_gym.core.records import DaemonStatus

_PREFIX = "npu_daemon_"


class StatusCollector(Collector):
    """Converts the status into metrics at each scrape, in the scraping thread.

    Args:
        ask: returns the current status, or ``None`` if it is not available.
    """

    def __init__(self, ask: Callable[[], DaemonStatus | None]) -> None:
        self._ask = ask

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; none if the status is not available."""
        status = self._ask()
        if status is None:
            return
        for name, text, value in (
            ("up_seconds", "Seconds since the daemon started.", status.up_seconds),
            ("draining", "1 while the daemon finishes what runs before it stops.", int(status.draining)),
            ("jobs_queued", "Jobs that wait.", status.queued),
            ("jobs_running", "Jobs with workers.", status.running),
            ("devices", "Devices.", status.devices),
            ("devices_held", "Devices in use.", status.devices_held),
        ):
            yield GaugeMetricFamily(_PREFIX + name, text, value=value)
        yield CounterMetricFamily(
            _PREFIX + "device_held_seconds",
            "Time that workers held devices.",
            value=status.device_held_seconds,
        )
        yield _family(GaugeMetricFamily, "workers", "Workers by phase.", "phase", status.workers)
        yield _family(
            CounterMetricFamily, "events", "Answers by status, and other events.", "event", status.counts
        )
        yield from _of_tenants(status)


def _of_tenants(status: DaemonStatus) -> Iterator[Metric]:
    tenants = status.tenants
    queued = {each.tenant: each.queued for each in tenants}
    running = {each.tenant: each.running for each in tenants}
    evaluations = {each.tenant: each.evaluations for each in tenants}
    seconds = {each.tenant: each.device_seconds for each in tenants}
    yield _family(GaugeMetricFamily, "tenant_jobs_queued", "Jobs that wait.", "tenant", queued)
    yield _family(GaugeMetricFamily, "tenant_jobs_running", "Jobs with workers.", "tenant", running)
    yield _family(CounterMetricFamily, "charged_evaluations", "Evaluations charged.", "tenant", evaluations)
    yield _family(CounterMetricFamily, "charged_device_seconds", "Device time charged.", "tenant", seconds)


def _family(
    kind: type[GaugeMetricFamily] | type[CounterMetricFamily],
    name: str,
    text: str,
    label: str,
    values: dict[str, int] | dict[str, float],
) -> Metric:
    family = kind(_PREFIX + name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def serve_metrics(address: str, ask: Callable[[], DaemonStatus | None]) -> None:
    """Serve metrics from a separate thread.

    Args:
        address: ``HOST:PORT``.
        ask: see ``StatusCollector``.

    Raises:
        MisuseError: the address is invalid.
        InfrastructureError: it cannot be bound.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise MisuseError(f"expected HOST:PORT for metrics, such as 127.0.0.1:9464, got {address!r}")
    registry = CollectorRegistry()
    registry.register(StatusCollector(ask))
    try:
        start_http_server(int(port), host, registry)
    except OSError as error:
        raise InfrastructureError(f"metrics cannot be served at {address}: {error}") from error
