"""An operator as a process: lease, watches, session, probes, from start to orderly stop.

It starts with nothing reachable and says what it waits for. Of two replicas one leads; the other
watches and is ready to take over. Who leads is ready when its session is open and a roll-up was
acknowledged; who stands by, when its watches are complete and another replica leads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, Final

import yaml

from bigfleet.kube import (
    PATIENT,
    ClusterConfig,
    EventRecorder,
    KubeClient,
    LeaderElection,
    Readiness,
    load,
)
from bigfleet.observe.operator import OperatorMetrics
from bigfleet.observe.pages import component_routes, serve_pages
from bigfleet.observe.process import SystemClock
from bigfleet.observe.settings import format_duration
from bigfleet.observe.tracing import open_spans
from bigfleet.operator.bootstrap.template import ApiServer, BootstrapTemplate, Surroundings
from bigfleet.operator.errors import TemplateError
from bigfleet.operator.operator import ClusterOperator, Identity, OperatorEnvironment
from bigfleet.operator.session.grpc_dial import GrpcDial
from bigfleet.operator.settings import OperatorSettings
from bigfleet.operator.watches import OperatorWatches
from bigfleet.wire.tls import ClientTls

COMPONENT: Final = "bigfleet-operator"
_URGENT_QPS: Final = 100.0
_URGENT_BURST: Final = 200
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningOperator:
    """An operator that is being served."""

    operator: ClusterOperator
    metrics_address: str


async def serve(
    settings: OperatorSettings,
    stop: asyncio.Event,
    version: str,
    on_running: Callable[[RunningOperator], None] = lambda _running: None,
) -> None:
    """Serve an operator until told to stop."""
    clock = SystemClock()
    metrics = OperatorMetrics(clock.monotonic, version=version)
    config = load(settings.kubeconfig or None)
    template = make_template(settings, config)
    files = settings.tls_files()
    tls = None if files is None else ClientTls(files, clock.monotonic)
    tell = partial(tell_expiry, tls, metrics.tls_expiry)
    tell()
    dial = GrpcDial(settings.shard_addr, tls, tell)
    spans = open_spans(
        settings.otlp_endpoint,
        settings.trace_ratio,
        service=COMPONENT,
        version=version,
        instance=f"{settings.cluster_id}/{settings.replica}",
    )
    async with (
        KubeClient.connect(
            config, qps=settings.qps, burst=settings.burst, user_agent=COMPONENT, observer=metrics
        ) as client,
        KubeClient.connect(
            config, qps=_URGENT_QPS, burst=_URGENT_BURST, user_agent=COMPONENT, observer=metrics
        ) as urgent,
    ):
        world = OperatorEnvironment(
            client=client,
            urgent=urgent,
            dial=dial,
            clock=clock,
            metrics=metrics,
            events=EventRecorder(client, COMPONENT, instance=settings.replica),
            template=template,
            rng=Random(),
            unguessable=SystemRandom(),
            spans=spans,
        )
        operator = ClusterOperator(
            Identity(settings.cluster_id, version), world, settings.operator_config()
        )
        watches = OperatorWatches(client, operator)
        election = LeaderElection(
            urgent,
            settings.lease_name,
            settings.replica,
            namespace=settings.lease_namespace,
            times=PATIENT,
        )
        metrics.standing_by(lambda: election.stands_by)
        readiness = Readiness(partial(why_not_ready, operator, watches, election))
        routes = component_routes(metrics.registry, readiness.__str__)
        http = serve_pages(settings.metrics_addr, routes)
        _log.info(
            "operator started",
            extra={
                "cluster": settings.cluster_id,
                "shard_addr": settings.shard_addr,
                "rollup_interval": format_duration(settings.rollup_interval),
            },
        )
        on_running(RunningOperator(operator, "" if http is None else http.address))
        try:
            await _live(operator, watches, election, [readiness.follow(), dial.follow()], stop)
        finally:
            if http is not None:
                http.close()
            if spans is not None:
                spans.close()


async def _live(
    operator: ClusterOperator,
    watches: OperatorWatches,
    election: LeaderElection,
    aside: Sequence[Coroutine[Any, Any, None]],
    stop: asyncio.Event,
) -> None:
    async def take_part() -> None:
        # A leader acts at once, so a replica waits for complete watches before it stands for
        # election.
        await watches.wait_synced()
        await election.run(operator.lead)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in (watches.run(), take_part(), *aside)]
        await stop.wait()
        # The session and the lease end in order before the watches do.
        tasks[1].cancel()
        await asyncio.gather(tasks[1], return_exceptions=True)
        for task in tasks:
            task.cancel()


def why_not_ready(
    operator: ClusterOperator, watches: OperatorWatches, election: LeaderElection
) -> str:
    """The reason, for people; empty when ready."""
    missing = watches.not_synced()
    if missing:
        return f"watches are not complete: {missing}"
    if not election.is_leader:
        return "" if election.stands_by else "no replica holds the lease yet"
    connection = operator.connection
    if not connection.is_open:
        return f"no session to the shard: {connection.last_end}"
    if connection.is_acknowledged:
        return ""
    if connection.refusal:
        return f"the shard refuses the roll-up: {connection.refusal}"
    return "the shard has not acknowledged a roll-up yet"


def make_template(settings: OperatorSettings, config: ClusterConfig) -> BootstrapTemplate | None:
    """The bootstrap template, checked; None where a stub is allowed."""
    if not settings.bootstrap_template:
        return None
    ca = config.certificate_authority or b""
    if settings.api_server_ca is not None:
        try:
            ca = settings.api_server_ca.read_bytes()
        except OSError as error:
            raise TemplateError(f"--api-server-ca cannot be read: {error}") from error
    around = Surroundings(
        settings.cluster_id,
        ApiServer(settings.api_server or config.server, ca),
        _values(settings.bootstrap_values),
    )
    return BootstrapTemplate.load(settings.bootstrap_template, around)


def _values(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        message = " ".join(str(error).split())
        raise TemplateError(f"--bootstrap-values {path} cannot be read: {message}") from error
    if not isinstance(found, dict | None):
        raise TemplateError(f"--bootstrap-values {path} holds no mapping: write `key: value` lines")
    return {str(key): value for key, value in (found or {}).items()}


def tell_expiry(tls: ClientTls | None, tell: Callable[[str, float], None]) -> None:
    """When the certificates in use end; of a bundle the earliest."""
    if tls is not None:
        tell("client", tls.contents.cert_ends)
        tell("ca", tls.contents.ca_ends)
