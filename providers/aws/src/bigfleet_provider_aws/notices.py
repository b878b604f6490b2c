"""Notices about hosts, from the queue into which EventBridge puts EC2's events.

    interruption warning       0.99, and an end two minutes after the event
    rebalance recommendation   0.5, no end
    state change               the host stops or ends: looked at once

A message is deleted after its notice was taken; one that cannot be read is logged, counted by its
log line and deleted, since it would come back forever.
"""

import json
from collections.abc import AsyncIterator, Container
from datetime import datetime
from typing import TYPE_CHECKING

from bigfleet_providerkit import Notice, NoticeKind
from bigfleet_providerkit.kit import Kit

if TYPE_CHECKING:
    from bigfleet_provider_aws.sessions import Clients

WAIT_S = 20
WARNED_S = 120.0
WARNING, REBALANCE = 0.99, 0.5
ENDINGS = frozenset({"stopping", "stopped", "shutting-down", "terminated"})


def notice_of(body: str, now: float) -> Notice | None:
    """The notice in a message; None for events that say nothing about the end of a host."""
    event = json.loads(body)
    kind, detail = event["detail-type"], event["detail"]
    match kind:
        case "EC2 Spot Instance Interruption Warning":
            ends = datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()
            ref = detail["instance-id"]
            return Notice(ref, NoticeKind.WARNING, WARNING, now, ends + WARNED_S)
        case "EC2 Instance Rebalance Recommendation":
            return Notice(detail["instance-id"], NoticeKind.REBALANCE, REBALANCE, now)
        case "EC2 Instance State-change Notification" if detail["state"] in ENDINGS:
            return Notice(detail["instance-id"], NoticeKind.GONE, WARNING, now)
    return None


class Notices:
    """Follows the queue until cancelled. `expected` are hosts that this provider itself ends."""

    def __init__(self, kit: Kit, clients: "Clients", queue: str, expected: Container[str]) -> None:
        self._kit = kit
        self._clients = clients
        self._queue = queue
        self._expected = expected

    async def follow(self) -> AsyncIterator[Notice]:
        """Notices as they come."""
        while True:
            answer = await self._kit.call(
                "ReceiveMessage",
                self._clients.sqs.receive_message,
                QueueUrl=self._queue,
                MaxNumberOfMessages=10,
                WaitTimeSeconds=WAIT_S,
            )
            for message in answer.get("Messages", ()):
                notice = self._read(str(message["Body"]))
                if notice is not None:
                    yield notice
                await self._kit.call(
                    "DeleteMessage",
                    self._clients.sqs.delete_message,
                    QueueUrl=self._queue,
                    ReceiptHandle=message["ReceiptHandle"],
                )

    def _read(self, body: str) -> Notice | None:
        try:
            notice = notice_of(body, self._kit.clock.now())
        except (ValueError, KeyError, TypeError) as error:
            self._kit.log.warning(
                "message of the queue ignored: it is not an event of EC2",
                error=repr(error), message=body[:200],
            )  # fmt: skip
            return None
        if notice is not None and notice.kind is NoticeKind.GONE and notice.ref in self._expected:
            return None
        return notice
