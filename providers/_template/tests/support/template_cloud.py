"""The cloud of this provider on one page, imitated for tests: hosts, guests, prices, events.

It is a process of its own, so that a provider can be killed and find everything again:

    python providers/_template/tests/support/template_cloud.py --addr 127.0.0.1:9090

Hosts start and end in their own time, an agent inside them writes files and runs scripts, spot
hosts are announced before they are reclaimed. The author of another provider puts the routes and
words of that provider's cloud here.
"""

from collections.abc import Callable
from functools import wraps

from bigfleet_fakecloud import (
    BadRequest,
    Call,
    Cloud,
    Conflict,
    Guests,
    Injected,
    Life,
    Operation,
    Reply,
    Resource,
    Then,
    Verb,
    main,
    page,
    text_of,
    texts_of,
)

TYPES = {"example-standard-4": (4, 16, {"on_demand": 0.40, "spot": 0.12})}
ZONE = "example-zone-a"
RECLAIMED_AFTER = 120.0
HOST = Life(
    first="starting",
    steps={
        "starting": Then("running", after=0.05, spread=0.5),
        "ending": Then("ended", after=0.03),
        "leaving": Then("reclaimed", after=RECLAIMED_AFTER),
    },
    verbs={
        "start": Verb.move("stopped", to="starting", stays=("starting", "running")),
        "delete": Verb.move(
            *("starting", "running", "stopped", "leaving"),
            to="ending",
            stays=("ending", "ended", "reclaimed"),
        ),
    },
    events={"stop": "stopped", "reclaim": "leaving"},
    released=frozenset({"ended", "reclaimed"}),
    vanishes={"ended": 60.0, "reclaimed": 60.0},
)  # fmt: skip
FIELDS = ("name", "type", "zone", "spot", "tags", "user_data", "token")


class ExampleCloud:
    """The routes, and what they share."""

    def __init__(self, seed: int) -> None:
        self.cloud = Cloud("example", seed=seed)
        self.hosts = self.cloud.collection("hosts", HOST)
        self.guests = Guests(self.cloud)
        self.guests.follow(
            self.hosts, ("running", "leaving"), lambda host: str(host.fields["user_data"])
        )
        self.events: list[dict[str, object]] = []
        self.hosts.listen(self._watch)
        routes: list[tuple[str, str, str, Callable[[Call], Reply]]] = [
            ("POST", "/v1/hosts", "CreateHost", self.create),
            ("GET", "/v1/hosts", "ListHosts", self.list),
            ("GET", "/v1/hosts/{id}", "GetHost", self.get),
            ("DELETE", "/v1/hosts/{id}", "DeleteHost", self.delete),
            ("POST", "/v1/hosts/{id}/start", "StartHost", self.start),
            ("PUT", "/v1/hosts/{id}/tags", "SetTags", self.set_tags),
            ("PUT", "/v1/hosts/{id}/files", "WriteFile", self.write),
            ("POST", "/v1/hosts/{id}/commands", "RunCommand", self.run),
            ("GET", "/v1/commands/{id}", "GetCommand", self.command),
            ("GET", "/v1/prices", "ListPrices", self.prices),
            ("GET", "/v1/types", "ListTypes", self.types),
            ("GET", "/v1/events", "ListEvents", self.list_events),
        ]
        for method, path, op, handler in routes:
            self.cloud.route(method, path, op)(authorised(handler))

    def create(self, call: Call) -> Reply:
        """A host that starts; the same token gives the same host."""
        body = call.only(*FIELDS)
        kind, zone = text_of(body, "type"), text_of(body, "zone")
        if kind not in TYPES or zone != ZONE:
            raise BadRequest(f"there is no {kind} in {zone}")
        tags, spot = texts_of(body, "tags"), body.get("spot") is True
        user_data = text_of(body, "user_data")

        def make() -> str:
            self.cloud.stock.check((kind, zone))
            ref = self.cloud.new_ref("h-")
            self.cloud.stock.hold(ref, (kind, zone))
            fields = {"type": kind, "zone": zone, "spot": spot, "user_data": user_data}
            self.hosts.create(ref, fields, tags)
            return ref

        ref = self.cloud.tokens.once("CreateHost", text_of(body, "token"), (kind, zone), make)
        return Reply(201, {"id": ref})

    def list(self, call: Call) -> Reply:
        """A page of the hosts with a tag, or with these ids."""
        name, _, value = call.query.get("tag", "").partition("=")
        ids = call.query["ids"].split(",") if "ids" in call.query else None
        found = self.hosts.list(
            lambda host: host.ref in ids if ids is not None else host.tags.get(name) == value
        )
        part = page(found, call.number("limit", 50), call.query.get("cursor"))
        return Reply(
            body={"hosts": [self._shown(host) for host in part.items], "next": part.cursor}
        )

    def get(self, call: Call) -> Reply:
        """One host."""
        return Reply(body=self._shown(self.hosts.get(call.params["id"])))

    def delete(self, call: Call) -> Reply:
        """The host ends."""
        return Reply(202, self._shown(self.hosts.act(call.params["id"], "delete")))

    def start(self, call: Call) -> Reply:
        """A stopped host starts again."""
        return Reply(202, self._shown(self.hosts.act(call.params["id"], "start")))

    def set_tags(self, call: Call) -> Reply:
        """All tags of a host."""
        tags = texts_of(call.only("tags"), "tags")
        return Reply(body=self._shown(self.hosts.edit(call.params["id"], tags=tags)))

    def write(self, call: Call) -> Reply:
        """A file inside a host."""
        ref = self._running(call)
        append = call.query.get("append") == "1"
        self.guests.write(ref, call.query["path"], call.body, append=append)
        return Reply(204)

    def run(self, call: Call) -> Reply:
        """A script inside a host, which takes its time."""
        ref, script = self._running(call), text_of(call.only("script"), "script")
        operation = self.guests.begin(ref, script, action="RunCommand")
        return Reply(202, self._command(operation))

    def command(self, call: Call) -> Reply:
        """How far a script is."""
        return Reply(body=self._command(self.cloud.operations.get(call.params["id"])))

    def prices(self, call: Call) -> Reply:
        """What hosts cost an hour, in dollars."""
        rows = [
            {"type": kind, "zone": ZONE, "paid": paid, "hourly": hourly}
            for kind, (_, _, prices) in TYPES.items()
            for paid, hourly in prices.items()
        ]
        return Reply(body={"prices": rows})

    def types(self, call: Call) -> Reply:
        """What hosts there are."""
        rows = [{"name": n, "cpus": cpus, "memory_gib": g} for n, (cpus, g, _) in TYPES.items()]
        return Reply(body={"types": rows})

    def list_events(self, call: Call) -> Reply:
        """What was announced after a number."""
        return Reply(body={"events": self.events[call.number("after", 0) :]})

    def _running(self, call: Call) -> str:
        host = self.hosts.get(call.params["id"])
        if host.state not in ("running", "leaving"):
            raise Conflict(f"host {host.ref} is {host.state}; its agent does not answer")
        return host.ref

    def _shown(self, host: Resource) -> dict[str, object]:
        shown = {key: value for key, value in host.fields.items() if key != "user_data"}
        return {
            "id": host.ref,
            "state": host.state,
            "tags": dict(host.tags),
            "created": host.created,
            "address": self.guests.address(host.ref),
            "node": self.guests.cluster(host.ref),
            **shown,
        }

    def _command(self, operation: Operation) -> dict[str, object]:
        result = self.guests.outcome(operation.ref)
        code, stderr = (result.exit_code, result.stderr) if result else (1, "")
        if operation.error is not None:
            code, stderr = 1, operation.error.text
        return {
            "id": operation.ref, "done": operation.done, "exit_code": code, "stderr": stderr,
        }  # fmt: skip

    def _watch(self, before: Resource | None, after: Resource | None) -> None:
        """Announce what happens to hosts."""
        if after is not None and after.state == "leaving":
            ends = after.changed + RECLAIMED_AFTER
            self.events.append({"number": len(self.events) + 1, "host": after.ref, "ends": ends})


def authorised(handler: Callable[[Call], Reply]) -> Callable[[Call], Reply]:
    """Refuse a call without a token."""

    @wraps(handler)
    def checked(call: Call) -> Reply:
        if not call.headers.get("authorization", "").startswith("Bearer "):
            raise Injected(401, "unauthorized", "give a token")
        return handler(call)

    return checked


if __name__ == "__main__":
    main(lambda seed: ExampleCloud(seed).cloud)
