"""One report of a shard, from its arrival to the answer; see 4.5 of the wire contract.

Who may report, and whether this replica leads, was asked before. A report that is not newer than
the last one is discarded; an unknown shard is registered before anything of its report is taken.
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

from bigfleet.coordinator.assignments import Answer
from bigfleet.coordinator.errors import WriteFailedError
from bigfleet.coordinator.rebalancer import Rebalancer
from bigfleet.coordinator.reign import Reign
from bigfleet.coordinator.state import AddShard, ContactClusters, ForgetAddress
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_base.addresses import can_dial
from bigfleet_base.identifiers import cut, is_id, shortened

_COMPLAINTS: Final = 1000
"""Clusters at the wrong shard that one leadership logs; each is logged once."""
_log = logging.getLogger(__name__)


class Counts(Protocol):
    """What is counted."""

    def shard_reported(self, shard: str) -> None:
        """A report was taken."""
        ...

    def address_refused(self) -> None:
        """A shard's address cannot be dialled: it is stored empty."""
        ...


async def answer_report(
    reign: Reign, report: pb.ShardReport, rebalancer: Rebalancer, counts: Counts
) -> Answer:
    """Take a report and answer it.

    WriteFailedError: the shard could not be registered, and nothing of the report was taken.
    """
    if not reign.reports.is_new(report):
        return _discarded(reign)
    await _register(reign, report, counts)
    # Another report of the same shard may have been taken meanwhile.
    if not reign.reports.is_new(report):
        return _discarded(reign)
    heard = reign.reports.take(report, reign.clock.now(), reign.clock.monotonic())
    counts.shard_reported(report.shard_id)
    rebalancer.reported(reign, heard)
    await _contact(reign, report)
    for ack in report.instruction_acks:
        ended = reign.instructions.acknowledged(report.shard_id, ack)
        if ended is not None:
            rebalancer.acknowledged(reign, ended)
    reign.check()
    return _taken(reign, report)


def _discarded(reign: Reign) -> Answer:
    return Answer(pb.ReportAck(coordinator_term=reign.term, acknowledged=False))


def _taken(reign: Reign, report: pb.ShardReport) -> Answer:
    head = pb.ReportAck(
        coordinator_term=reign.term,
        acknowledged=True,
        instructions=reign.instructions.pending(report.shard_id),
    )
    if not reign.assignments.is_due(report.assignments_revision):
        return Answer(head)
    return Answer(head, reign.assignments.of(report.shard_id))


async def clear_addresses(reign: Reign) -> None:
    """At the start of a leadership: clear stored addresses that cannot be dialled.

    Versions before this one stored them. The shard's next report brings another, or none.
    """
    for shard_id, shard in sorted(reign.state.shards.items()):
        if shard.address and not can_dial(shard.address):
            await reign.apply(ForgetAddress(shard_id))
            _log.warning(
                "stored address of a shard cannot be dialled and was cleared; start the shard with "
                "--advertise-addr HOST:PORT",
                extra={"shard": shard_id, "address": shortened(shard.address)},
            )


async def _register(reign: Reign, report: pb.ShardReport, counts: Counts) -> None:
    known = reign.state.shards.get(report.shard_id)
    shard_id, address = report.shard_id, report.shard_address
    if address and not can_dial(address):
        _refuse_address(reign, shard_id, address, counts)
        if known is not None and known.address:
            await reign.apply(ForgetAddress(shard_id))
            return
        address = ""
    if known is not None and address in ("", known.address):
        return
    await reign.apply(AddShard(shard_id, address))
    _log.info("shard registered", extra={"shard": shard_id, "address": address})


def _refuse_address(reign: Reign, shard_id: str, address: str, counts: Counts) -> None:
    """Count an address that cannot be dialled, and warn once of each."""
    counts.address_refused()
    shown = shortened(address)
    if (shown, shard_id, shown) in reign.complained or len(reign.complained) >= _COMPLAINTS:
        return
    reign.complained.add((shown, shard_id, shown))
    _log.warning(
        "address of a shard cannot be dialled and is not stored; its report is accepted; start the "
        "shard with --advertise-addr HOST:PORT",
        extra={"shard": shard_id, "address": shown},
    )


async def _contact(reign: Reign, report: pb.ShardReport) -> None:
    """Bind the clusters nobody has; say which belong elsewhere."""
    shard_id, new, unusable, example = report.shard_id, [], 0, ""
    for cluster in report.known_clusters:
        binding = reign.state.clusters.get(cluster)
        if binding is None and not is_id(cluster):
            unusable += 1
            example = example or cut(cluster)
        elif binding is None:
            new.append(cluster)
        elif binding.shard != shard_id:
            _complain(
                reign, cluster, shard_id, binding.shard,
                "cluster is bound to another shard than the one it calls; bind it with bigfleetctl "
                "bind-cluster, or give its operator the other address",
            )  # fmt: skip
    if unusable and ("", shard_id, "") not in reign.complained:
        reign.complained.add(("", shard_id, ""))
        _log.warning(
            "cluster ids are not bound: they are not 1 to 253 letters, digits, '-_./:'",
            extra={"shard": shard_id, "clusters": unusable, "example": example},
        )
    if not new:
        return
    try:
        await reign.apply(ContactClusters(shard_id, tuple(new)))
    except WriteFailedError as error:
        _log.warning(
            "clusters are not bound yet; the next report tries again",
            extra={"shard": shard_id, "clusters": len(new), "error": str(error)},
        )


def _complain(reign: Reign, cluster: str, shard_id: str, bound: str, what: str) -> None:
    seen = (cluster, shard_id, bound)
    if seen in reign.complained or len(reign.complained) >= _COMPLAINTS:
        return
    reign.complained.add(seen)
    _log.warning(what, extra={"cluster": cut(cluster), "shard": shard_id, "bound": bound})
