"""Notices about hosts, from the queue into which EventBridge puts EC2's events.

interruption warning       0.99, and an end two minutes after the event
rebalance recommendation   0.5, no end
state change               the host stops or ends: looked at once
"""

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from bigfleet_provider_aws.api import Api
from bigfleet_providerkit import Notice, NoticeKind
from bigfleet_providerkit.interruption.queue import queued_notices

WAIT_S = 20
WARNED_S = 120.0
WARNING, REBALANCE = 0.99, 0.5
ENDINGS = frozenset({"stopping", "stopped", "shutting-down", "terminated"})


def notice_of(body: str, now: float) -> Notice | None:
    """The notice in a message; None for events that say nothing about the end of a host."""
    event = json.loads(body)
    detail = event["detail"]
    ref = detail["instance-id"]
    match event["detail-type"]:
        case "EC2 Spot Instance Interruption Warning":
            ends = datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()
            return Notice(ref, NoticeKind.WARNING, WARNING, now, ends + WARNED_S)
        case "EC2 Instance Rebalance Recommendation":
            return Notice(ref, NoticeKind.REBALANCE, REBALANCE, now)
        case "EC2 Instance State-change Notification" if detail["state"] in ENDINGS:
            return Notice(ref, NoticeKind.GONE, WARNING, now)
    return None


def follow(api: Api, queue: str) -> AsyncIterator[Notice]:
    """The notices in a queue of SQS, until cancelled."""

    async def receive() -> list[dict[str, Any]]:
        answer = await api.call(
            "ReceiveMessage", QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=WAIT_S
        )
        return list(answer.get("Messages", ()))

    async def delete(message: dict[str, Any]) -> None:
        await api.call("DeleteMessage", QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])

    def read(message: dict[str, Any]) -> Notice | None:
        return notice_of(str(message["Body"]), api.kit.clock.now())

    return queued_notices(receive, read, delete, api.kit.log)
