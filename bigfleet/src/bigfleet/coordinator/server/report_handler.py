"""One report of a shard, from its arrival to the answer; see 4.5 of the wire contract.

Who may report, and whether this replica leads, was asked before. A report that is not newer than
the last one is discarded; an unknown shard is registered before anything of its report is taken.
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

from bigfleet.coordinator.errors import WriteFailedError
from bigfleet.coordinator.leadership.leader_state import LeaderState
from bigfleet.coordinator.leadership.ports import Rebalancer
from bigfleet.coordinator.reports.assignments import ReportReply
from bigfleet.coordinator.state import AddShard, ContactClusters, ForgetAddress
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_base.addresses import can_dial
from bigfleet_base.identifiers import cut, is_id, shortened

_COMPLAINTS: Final = 1000
"""Clusters at the wrong shard that one leadership logs; each is logged once."""
_log = logging.getLogger(__name__)


class ReportCounts(Protocol):
    """What is counted."""

    def shard_reported(self, shard: str) -> None:
        """A report was taken."""

    def address_refused(self) -> None:
        """A shard's address cannot be dialled: it is stored empty."""


async def handle_report(
    leader_state: LeaderState, report: pb.ShardReport, rebalancer: Rebalancer, counts: ReportCounts
) -> ReportReply:
    """Take a report and answer it.

    WriteFailedError: the shard could not be registered, and nothing of the report was taken.
    """
    if not leader_state.reports.is_new(report):
        return _discarded(leader_state)
    await _register(leader_state, report, counts)
    # Another report of the same shard may have been taken meanwhile.
    if not leader_state.reports.is_new(report):
        return _discarded(leader_state)
    received = leader_state.reports.take(
        report, leader_state.clock.now(), leader_state.clock.monotonic()
    )
    counts.shard_reported(report.shard_id)
    rebalancer.reported(leader_state, received)
    await _contact(leader_state, report)
    for ack in report.instruction_acks:
        ended = leader_state.instructions.acknowledged(report.shard_id, ack)
        if ended is not None:
            rebalancer.acknowledged(leader_state, ended)
    leader_state.check()
    return _taken(leader_state, report)


def _discarded(leader_state: LeaderState) -> ReportReply:
    return ReportReply(pb.ReportAck(coordinator_term=leader_state.term, acknowledged=False))


def _taken(leader_state: LeaderState, report: pb.ShardReport) -> ReportReply:
    head = pb.ReportAck(
        coordinator_term=leader_state.term,
        acknowledged=True,
        instructions=leader_state.instructions.pending(report.shard_id),
    )
    if not leader_state.assignments.is_due(report.assignments_revision):
        return ReportReply(head)
    return ReportReply(head, leader_state.assignments.of(report.shard_id))


async def clear_addresses(leader_state: LeaderState) -> None:
    """At the start of a leadership: clear stored addresses that cannot be dialled.

    Versions before this one stored them. The shard's next report brings another, or none.
    """
    for shard_id, shard in sorted(leader_state.state.shards.items()):
        if shard.address and not can_dial(shard.address):
            await leader_state.apply(ForgetAddress(shard_id))
            _log.warning(
                "stored address of a shard cannot be dialled and was cleared; start the shard with "
                "--advertise-addr HOST:PORT",
                extra={"shard": shard_id, "address": shortened(shard.address)},
            )


async def _register(
    leader_state: LeaderState, report: pb.ShardReport, counts: ReportCounts
) -> None:
    known = leader_state.state.shards.get(report.shard_id)
    shard_id, address = report.shard_id, report.shard_address
    if address and not can_dial(address):
        _refuse_address(leader_state, shard_id, address, counts)
        if known is not None and known.address:
            await leader_state.apply(ForgetAddress(shard_id))
            return
        address = ""
    if known is not None and address in ("", known.address):
        return
    await leader_state.apply(AddShard(shard_id, address))
    _log.info("shard registered", extra={"shard": shard_id, "address": address})


def _refuse_address(
    leader_state: LeaderState, shard_id: str, address: str, counts: ReportCounts
) -> None:
    """Count an address that cannot be dialled, and warn once of each."""
    counts.address_refused()
    shown = shortened(address)
    if (shown, shard_id, shown) in leader_state.complained or len(
        leader_state.complained
    ) >= _COMPLAINTS:
        return
    leader_state.complained.add((shown, shard_id, shown))
    _log.warning(
        "address of a shard cannot be dialled and is not stored; its report is accepted; start the "
        "shard with --advertise-addr HOST:PORT",
        extra={"shard": shard_id, "address": shown},
    )


async def _contact(leader_state: LeaderState, report: pb.ShardReport) -> None:
    """Bind the clusters that no shard has; say which belong elsewhere."""
    shard_id, new, unusable, example = report.shard_id, [], 0, ""
    for cluster in report.known_clusters:
        binding = leader_state.state.clusters.get(cluster)
        if binding is None and not is_id(cluster):
            unusable += 1
            example = example or cut(cluster)
        elif binding is None:
            new.append(cluster)
        elif binding.shard != shard_id:
            _complain(
                leader_state, cluster, shard_id, binding.shard,
                "cluster is bound to another shard than the one it calls; bind it with bigfleetctl "
                "bind-cluster, or give its operator the other address",
            )  # fmt: skip
    if unusable and ("", shard_id, "") not in leader_state.complained:
        leader_state.complained.add(("", shard_id, ""))
        _log.warning(
            "cluster ids are not bound: they are not 1 to 253 letters, digits, '-_./:'",
            extra={"shard": shard_id, "clusters": unusable, "example": example},
        )
    if not new:
        return
    try:
        await leader_state.apply(ContactClusters(shard_id, tuple(new)))
    except WriteFailedError as error:
        _log.warning(
            "clusters are not bound yet; the next report tries again",
            extra={"shard": shard_id, "clusters": len(new), "error": str(error)},
        )


def _complain(
    leader_state: LeaderState, cluster: str, shard_id: str, bound: str, what: str
) -> None:
    seen = (cluster, shard_id, bound)
    if seen in leader_state.complained or len(leader_state.complained) >= _COMPLAINTS:
        return
    leader_state.complained.add(seen)
    _log.warning(what, extra={"cluster": cut(cluster), "shard": shard_id, "bound": bound})
