"""Reads what one command needs, from the API server and the shard, and makes its answer.

Each function gives the coroutine that `context.run` calls with a client and a namespace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bigfleet.cli.doctor.findings import Finding
from bigfleet.cli.errors import FailureError
from bigfleet.cli.kubectl.answer import PluginAnswer
from bigfleet.cli.kubectl.checks import look
from bigfleet.cli.kubectl.cluster_reader import ClusterReader
from bigfleet.cli.kubectl.context import Plugin
from bigfleet.cli.kubectl.listings import (
    PluginListing,
    judge,
    need_rows,
    plan_listing,
    request_listing,
    upcoming_listing,
)
from bigfleet.cli.kubectl.shard_reader import ShardPlace, ShardVerdicts, place_of, verdicts
from bigfleet.cli.kubectl.why_node import NodeFacts, explain_node, upcoming_of
from bigfleet.cli.kubectl.why_pod import PodFacts, explain_pod, machines_of, size_of
from bigfleet.kube import KubeClient
from bigfleet.podcontroller.arrivals import need_of

AnswerReader = Callable[[KubeClient, str], Awaitable[PluginAnswer]]
ListingReader = Callable[[KubeClient, str], Awaitable[PluginListing]]


def pod_answer(plugin: Plugin, name: str) -> AnswerReader:
    """Why a Pod waits, or which machine serves it."""

    async def read(client: KubeClient, namespace: str) -> PluginAnswer:
        reader = ClusterReader(client, plugin.now_unix_s())
        pod = await reader.pod(name, namespace)
        if pod is None:
            raise FailureError(
                f"there is no Pod {name!r} in namespace {namespace}: name its namespace with -n"
            )
        request = await reader.request_of(pod)
        need = request.status.need if request is not None else None
        machines = machines_of(need, await reader.upcoming() if need is not None else ())
        operator = None if pod.spec.node_name else await reader.operator()
        place, shard, arrivals = ShardPlace(), ShardVerdicts(), None
        if request is not None and need is not None and not pod.spec.node_name:
            arrivals = await reader.arrivals(need, machines)
            place = place_of(plugin.options, operator)
            row = need.profile, need.group, size_of(request)
            shard = await verdicts(plugin.options, place, row)
        facts = PodFacts(pod, request, machines, arrivals, operator, place, shard)
        return explain_pod(facts, reader.now_unix_s).with_notes(reader.notes)

    return read


def node_answer(plugin: Plugin, name: str) -> AnswerReader:
    """For which demand a node is there, and whether it is taken back."""

    async def read(client: KubeClient, _namespace: str) -> PluginAnswer:
        reader = ClusterReader(client, plugin.now_unix_s())
        node = await reader.node(name)
        upcoming = upcoming_of(name, node, await reader.upcoming())
        if node is None and upcoming is None and not reader.notes:
            raise FailureError(
                f"there is no Node and no UpcomingNode {name!r}: `kubectl get nodes` lists them"
            )
        need = need_of(upcoming) if upcoming is not None else None
        every = await reader.every_request() if need is not None and need.profile else []
        facts = NodeFacts(
            name=name,
            node=node,
            upcoming=upcoming,
            pods=await reader.pods_on(name) if node is not None else (),
            requests=[one for one in every if one.status.need == need],
            events=await reader.events_on(node.metadata.uid, "") if node is not None else (),
        )
        return explain_node(facts).with_notes(reader.notes)

    return read


def request_table(plugin: Plugin, all_namespaces: bool) -> ListingReader:
    """The CapacityRequests of a namespace, or of all."""

    async def read(client: KubeClient, namespace: str) -> PluginListing:
        reader = ClusterReader(client, plugin.now_unix_s())
        found = await reader.requests("" if all_namespaces else namespace)
        where = "all namespaces" if all_namespaces else f"namespace {namespace}"
        return request_listing(found, where)

    return read


def upcoming_table(plugin: Plugin) -> ListingReader:
    """The machines of the cluster."""

    async def read(client: KubeClient, _namespace: str) -> PluginListing:
        reader = ClusterReader(client, plugin.now_unix_s())
        made = upcoming_listing(await reader.upcoming(), reader.now_unix_s)
        return PluginListing(made.answer.with_notes(reader.notes), made.table)

    return read


def need_table(plugin: Plugin) -> ListingReader:
    """The needs of the cluster, with the verdicts of its shard where it can be asked."""

    async def read(client: KubeClient, _namespace: str) -> PluginListing:
        reader = ClusterReader(client, plugin.now_unix_s())
        requests = await reader.requests()
        rows = need_rows(requests, await reader.upcoming())
        shard = await verdicts(plugin.options, place_of(plugin.options, await reader.operator()))
        judge(rows, shard.views)
        waiting = sum(one.status.need is None for one in requests)
        made = plan_listing(rows, waiting, shard.problem)
        return PluginListing(made.answer.with_notes(reader.notes), made.table)

    return read


def findings(plugin: Plugin) -> Callable[[KubeClient, str], Awaitable[list[Finding]]]:
    """Every check of the cluster."""

    async def read(client: KubeClient, _namespace: str) -> list[Finding]:
        reader = ClusterReader(client, plugin.now_unix_s())
        return [finding async for finding in look(reader, plugin.options)]

    return read
