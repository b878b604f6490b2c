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
from bigfleet.coordinator.state import AddShard, ContactClusters
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_base.identifiers import cut, is_id

_COMPLAINTS: Final = 1000
"""Clusters at the wrong shard that one leadership logs; each is logged once."""
_log = logging.getLogger(__name__)


class Counts(Protocol):
    """What is counted."""

    def shard_reported(self, shard: str) -> None:
        """A report was taken."""
        ...


async def answer_report(
    reign: Reign, report: pb.ShardReport, rebalancer: Rebalancer, counts: Counts
) -> Answer:
    """Take a report and answer it.

    WriteFailedError: the shard could not be registered, and nothing of the report was taken.
    """
    if not reign.reports.is_new(report):
        return _discarded(reign)
    await _register(reign, report)
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


async def _register(reign: Reign, report: pb.ShardReport) -> None:
    known = reign.state.shards.get(report.shard_id)
    address = report.shard_address
    if known is not None and address in ("", known.address):
        return
    await reign.apply(AddShard(report.shard_id, address))
    _log.info("shard registered", extra={"shard": report.shard_id, "address": address})


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
