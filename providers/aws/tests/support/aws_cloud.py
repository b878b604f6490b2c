"""AWS on one page, imitated for tests: EC2, Systems Manager, SQS and the price list.

It is a process of its own, so that a provider can be killed and find everything again:

    python providers/aws/tests/support/aws_cloud.py --addr 127.0.0.1:9090

Instances start and end in their own time, an agent in them runs the scripts of SendCommand in a
real shell, spot instances are announced over the queue before they are taken back. `aws_wire` reads
and writes the wire forms, `aws_market` has what is sold, `aws_ec2` the instances.
"""

import json
import uuid
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import aws_market as market
import aws_wire as wire
from aws_ec2 import SHOWN_AS, Ec2
from bigfleet_fakecloud import (
    BadRequest,
    Call,
    Cloud,
    Conflict,
    Guests,
    Injected,
    NotFound,
    OutOfStock,
    Problem,
    QuotaExceeded,
    Reply,
    Resource,
    Throttled,
    TokenReused,
    main,
)

VISIBLE_AGAIN_S = 30.0
CLOCK_TOLERANCE_S = 300.0
EC2_WORDS: dict[type[Problem], tuple[int, str]] = {
    Throttled: (503, "RequestLimitExceeded"),
    OutOfStock: (500, "InsufficientInstanceCapacity"),
    QuotaExceeded: (400, "VcpuLimitExceeded"),
    NotFound: (400, "InvalidInstanceID.NotFound"),
    Conflict: (400, "IncorrectInstanceState"),
    TokenReused: (400, "IdempotentParameterMismatch"),
    BadRequest: (400, "InvalidParameterValue"),
}
JSON_WORDS: dict[type[Problem], tuple[int, str]] = {
    Throttled: (400, "ThrottlingException"),
    NotFound: (400, "InvalidInstanceId"),
    Conflict: (400, "InvalidInstanceId"),
    BadRequest: (400, "ValidationException"),
}
service_of_call: ContextVar[str] = ContextVar("service_of_call", default="ec2")
"""The service that the present call is for: errors are worded in its form."""


def worded(problem: Problem) -> Reply:
    """A problem in the words of the service that was service_of_call."""
    name = service_of_call.get()
    words = EC2_WORDS if name in ("ec2", "sts") else JSON_WORDS
    status, code = words.get(type(problem), (problem.status, problem.code))
    return wire.failure(name, status, code, problem.text)


@dataclass(slots=True)
class Message:
    """One message of the queue; in flight until `hidden_until`."""

    number: int
    body: str
    hidden_until: float = 0.0


@dataclass(slots=True)
class Queue:
    """The queue that EventBridge feeds."""

    messages: list[Message] = field(default_factory=list)
    made: int = 0

    def put(self, body: str) -> None:
        """A message arrives."""
        self.made += 1
        self.messages.append(Message(self.made, body))


class AwsCloud:
    """The handlers, and what they share."""

    def __init__(self, seed: int) -> None:
        self.cloud = Cloud("aws", seed=seed, dialect=worded)
        self.guests = Guests(self.cloud)
        self.ec2 = Ec2(self.cloud, self.guests)
        self.queue = Queue()
        self.commands: dict[str, tuple[str, str, str]] = {}
        """Of each command its operation, instance and text: what Systems Manager keeps."""
        self.ec2.instances.listen(self._announce)
        self.cloud.levers["POST", "queue"] = self._put_message
        self.cloud.levers["GET", "commands"] = self._show_commands
        handlers: dict[tuple[str, str], Callable[[dict[str, Any]], Mapping[str, Any] | None]] = {
            ("ec2", "RunInstances"): self.ec2.run,
            ("ec2", "TerminateInstances"): partial(self.ec2.change, verb="terminate"),
            ("ec2", "StartInstances"): partial(self.ec2.change, verb="start"),
            ("ec2", "DescribeInstances"): self.ec2.describe,
            ("ec2", "CreateTags"): self.ec2.tag,
            ("ec2", "DeleteTags"): self.ec2.untag,
            ("ec2", "DescribeInstanceTypes"): self.ec2.types,
            ("ec2", "DescribeSpotPriceHistory"): self.ec2.spot_history,
            ("ec2", "DescribeImages"): self.ec2.images,
            ("ssm", "SendCommand"): self.send_command,
            ("ssm", "GetCommandInvocation"): self.invocation,
            ("ssm", "GetParameter"): self.parameter,
            ("sqs", "ReceiveMessage"): self.receive,
            ("sqs", "DeleteMessage"): self.delete_message,
            ("pricing", "GetProducts"): self.products,
            ("sts", "AssumeRole"): self.assume,
        }
        for (name, operation), handler in handlers.items():
            self._route(name, operation, handler)
        offer = f"/offers/v1.0/aws/AmazonEC2/current/{market.REGION}/index.csv"
        self.cloud.route("GET", offer, "PriceListBulk")(self.offer_file)
        advisor = "/spot-advisor-data.json"
        self.cloud.route("GET", advisor, "SpotAdvisor")(lambda call: Reply(body=market.advisor()))

    def _route(
        self,
        name: str,
        operation: str,
        handler: Callable[[dict[str, Any]], Mapping[str, Any] | None],
    ) -> None:
        def mine(call: Call) -> bool:
            if wire.operation_of(call) != (name, operation):
                return False
            service_of_call.set(name)
            return True

        def answer(call: Call) -> Reply:
            self._check_signature(call, name)
            return wire.reply(call, handler(wire.read(call)))

        # SQS is called at the address of its queue, everything else at the root.
        for path in ("/", "/{account}/{queue}") if name == "sqs" else ("/",):
            self.cloud.route("POST", path, operation, when=mine)(answer)

    def _check_signature(self, call: Call, name: str) -> None:
        """Who signs, for which service and when; the signature itself is not computed."""
        signed = call.headers.get("authorization", "")
        if not signed.startswith("AWS4-HMAC-SHA256 Credential=") or f"/{name}/" not in signed:
            raise Injected(401, "AuthFailure", "AWS was not able to validate the credentials")
        sent = datetime.fromisoformat(call.headers["x-amz-date"])
        off = abs(sent.timestamp() - datetime.now(UTC).timestamp())
        if off > CLOCK_TOLERANCE_S:
            code = "RequestExpired" if name == "ec2" else "InvalidSignatureException"
            raise Injected(400, code, f"the request was signed {off:.0f} s off")

    def send_command(self, params: dict[str, Any]) -> dict[str, Any]:
        """A script on one instance, whose text stays in the history."""
        (ref,) = params["InstanceIds"]
        script = "\n".join(params["Parameters"]["commands"])
        if params["DocumentName"] != "AWS-RunShellScript":
            raise Injected(400, "InvalidDocument", params["DocumentName"])
        operation = self.guests.begin(ref, script, action="SendCommand")
        command = str(uuid.uuid5(uuid.NAMESPACE_OID, operation.ref))
        self.commands[command] = (operation.ref, ref, script)
        return {"Command": {"CommandId": command}}

    def invocation(self, params: dict[str, Any]) -> dict[str, Any]:
        """How far a script is."""
        ref, instance, _ = self.commands.get(params["CommandId"], ("", "", ""))
        if instance != params["InstanceId"]:
            raise Injected(400, "InvocationDoesNotExist", "")
        operation = self.cloud.operations.get(ref)
        result = self.guests.outcome(operation.ref)
        if not operation.done or result is None:
            return {"Status": "InProgress", "ResponseCode": -1}
        if operation.error is not None:
            status = operation.error.code
            return {"Status": "TimedOut", "StatusDetails": status, "ResponseCode": -1}
        return {
            "Status": "Success" if result.exit_code == 0 else "Failed",
            "ResponseCode": result.exit_code,
            "StandardOutputContent": result.stdout,
            "StandardErrorContent": result.stderr,
        }

    def parameter(self, params: dict[str, Any]) -> dict[str, Any]:
        """The value of a parameter, which is an image here."""
        value = market.PARAMETERS.get(params["Name"])
        if value is None:
            raise Injected(400, "ParameterNotFound", f"no parameter {params['Name']}")
        return {"Parameter": {"Name": params["Name"], "Value": value}}

    def receive(self, params: dict[str, Any]) -> dict[str, Any]:
        """Up to ten messages that are not in flight. An empty queue answers at once: calls here
        cannot wait, so long polling is the one thing that is not imitated."""
        now = self.cloud.timeline.now()
        free = [message for message in self.queue.messages if message.hidden_until <= now]
        shown = free[: params.get("MaxNumberOfMessages", 1)]
        for message in shown:
            message.hidden_until = now + params.get("VisibilityTimeout", VISIBLE_AGAIN_S)
        return {
            "Messages": [
                {"MessageId": str(m.number), "ReceiptHandle": str(m.number), "Body": m.body}
                for m in shown
            ]
        }

    def delete_message(self, params: dict[str, Any]) -> None:
        """The message was taken."""
        number = int(params["ReceiptHandle"])
        self.queue.messages = [m for m in self.queue.messages if m.number != number]

    def products(self, params: dict[str, Any]) -> dict[str, Any]:
        """Price list entries that fit all filters; the list also has Windows."""
        wanted = {entry["Field"]: entry["Value"] for entry in params["Filters"]}
        rows = []
        for entry in market.TYPES.values():
            for system in ("Linux", "Windows"):
                known = {**market.attributes(entry.name), "operatingSystem": system}
                if all(known.get(name) == value for name, value in wanted.items()):
                    price = entry.price * (2 if system == "Windows" else 1)
                    rows.append(market.product(entry, system=system, price=price))
        return {"FormatVersion": "aws_v1", "PriceList": rows}

    def offer_file(self, call: Call) -> Reply:
        """The bulk list; unchanged when the caller has it."""
        tag = '"v1"'
        if call.headers.get("if-none-match") == tag:
            return Reply(304, headers={"ETag": tag})
        return Reply(body=market.offer_csv(), headers={"ETag": tag, "content-type": "text/csv"})

    def assume(self, params: dict[str, Any]) -> dict[str, Any]:
        """Credentials of a role."""
        until = self.cloud.timeline.now() + 3600
        return {
            "Credentials": {
                "AccessKeyId": "ASIAROLE", "SecretAccessKey": "s", "SessionToken": "t",
                "Expiration": until,
            },
            "AssumedRoleUser": {"Arn": params["RoleArn"], "AssumedRoleId": "r"},
        }  # fmt: skip

    def _announce(self, before: Resource | None, after: Resource | None) -> None:
        """What EventBridge puts into the queue."""
        if after is None or (before is not None and before.state == after.state):
            return
        if after.state == "leaving":
            self.queue.put(event("EC2 Spot Instance Interruption Warning", after))
        else:
            state = SHOWN_AS.get(after.state, after.state)
            self.queue.put(event("EC2 Instance State-change Notification", after, state=state))

    def _put_message(self, call: Call, rest: list[str]) -> Reply:
        self.queue.put(call.body.decode())
        return Reply(204)

    def _show_commands(self, call: Call, rest: list[str]) -> Reply:
        return Reply(body={"commands": [text for _, _, text in self.commands.values()]})


def event(detail_type: str, host: Resource, **detail: str) -> str:
    """A message of EventBridge about an instance."""
    moment = datetime.fromtimestamp(host.changed, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps(
        {
            "version": "0",
            "detail-type": detail_type,
            "source": "aws.ec2",
            "time": moment,
            "region": market.REGION,
            "detail": {"instance-id": host.ref, **detail},
        }
    )


if __name__ == "__main__":
    main(lambda seed: AwsCloud(seed).cloud)
