"""A tiny cloud on one page: hosts with a life, quotas, stock, operations, tags and prices.

It is the example from which the imitation of a real cloud starts, and the cloud of the engine's
own tests. Run it: `python -m bigfleet_fakecloud.examples.tiny --addr 127.0.0.1:9090`.
"""

from bigfleet_fakecloud import (
    BadRequest,
    Call,
    Cloud,
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
from bigfleet_fakecloud.state.timeline import Clock

PRICES = {"small": 0.05, "large": 0.40}
CPUS = {"small": 2, "large": 16}
HOST = Life(
    first="starting",
    steps={
        "starting": Then("running", after=2.0, spread=0.25),
        "stopping": Then("stopped", after=1.0),
        "ending": Then("ended", after=1.0),
    },
    verbs={
        "start": Verb.move("stopped", to="starting", stays=("starting", "running")),
        "stop": Verb.move("running", to="stopping", stays=("stopping", "stopped")),
        "delete": Verb.move(
            *("starting", "running", "stopping", "stopped"), to="ending", stays=("ending", "ended")
        ),
    },
    events={"stop": "stopped", "preempt": "ended"},
    released=frozenset({"ended"}),
    vanishes={"ended": 60.0},
)


def host_body(host: Resource) -> dict[str, object]:
    """A host as this cloud shows it."""
    return {"id": host.ref, "state": host.state, "tags": dict(host.tags), **host.fields}


def operation_body(operation: Operation) -> dict[str, object]:
    """An operation as this cloud shows it."""
    error = operation.error
    return {
        "id": operation.ref,
        "host": operation.target,
        "done": operation.done,
        "progress": round(operation.progress * 100),
        "error": {"code": error.code, "message": error.text} if error else None,
    }


def tiny(seed: int = 1, clock: Clock | None = None) -> Cloud:
    """The cloud, with nothing in it."""
    cloud = Cloud("tiny", clock=clock, seed=seed)
    hosts = cloud.collection("hosts", HOST)

    @cloud.route("POST", "/hosts", op="CreateHost")
    def create(call: Call) -> Reply:
        body = call.only("type", "zone", "tags", "token")
        kind, zone = text_of(body, "type"), text_of(body, "zone")
        if kind not in PRICES:
            raise BadRequest(f"no type {kind!r}; there are {', '.join(PRICES)}")
        tags = texts_of(body, "tags")
        token = text_of(body, "token") if "token" in body else None

        def make() -> str:
            cloud.quota.check(("cpus",), CPUS[kind])
            cloud.stock.check((kind, zone))
            ref = cloud.new_ref("h-")
            cloud.quota.hold(ref, ("cpus",), CPUS[kind])
            cloud.stock.hold(ref, (kind, zone))
            hosts.create(ref, {"type": kind, "zone": zone}, tags)
            return ref

        ref = cloud.tokens.once("CreateHost", token, (kind, zone, tags), make)
        found = hosts.truth(ref)
        return Reply(201, host_body(found) if found else {"id": ref, "state": "ended"})

    @cloud.route("GET", "/hosts", op="ListHosts")
    def list_hosts(call: Call) -> Reply:
        name, _, value = call.query.get("tag", "").partition("=")
        found = hosts.list(lambda host: not name or host.tags.get(name) == value)
        part = page(found, call.number("limit", 50), call.query.get("cursor"))
        return Reply(body={"hosts": [host_body(host) for host in part.items], "next": part.cursor})

    @cloud.route("GET", "/hosts/{id}", op="GetHost")
    def get(call: Call) -> Reply:
        return Reply(body=host_body(hosts.get(call.params["id"])))

    @cloud.route("PUT", "/hosts/{id}/tags", op="SetTags")
    def set_tags(call: Call) -> Reply:
        tags = texts_of(call.only("tags"), "tags")
        return Reply(body=host_body(hosts.edit(call.params["id"], tags=tags)))

    @cloud.route("POST", "/hosts/{id}/resize", op="ResizeHost")
    def resize(call: Call) -> Reply:
        ref, kind = call.params["id"], text_of(call.only("type"), "type")
        hosts.get(ref)
        operation = cloud.operations.begin(
            "ResizeHost", ref, seconds=4.0, effect=lambda: hosts.edit(ref, {"type": kind})
        )
        return Reply(202, operation_body(operation))

    @cloud.route("GET", "/operations/{id}", op="GetOperation")
    def operation(call: Call) -> Reply:
        return Reply(body=operation_body(cloud.operations.get(call.params["id"])))

    @cloud.route("POST", "/hosts/{id}/{verb}", op="HostAction")
    def act(call: Call) -> Reply:
        if call.params["verb"] not in ("start", "stop"):
            raise BadRequest(f"no action {call.params['verb']!r}; there are start and stop")
        return Reply(202, host_body(hosts.act(call.params["id"], call.params["verb"])))

    @cloud.route("DELETE", "/hosts/{id}", op="DeleteHost")
    def delete(call: Call) -> Reply:
        return Reply(202, host_body(hosts.act(call.params["id"], "delete")))

    @cloud.route("GET", "/prices", op="ListPrices")
    def prices(call: Call) -> Reply:
        return Reply(body={"currency": "USD", "hourly": PRICES})

    return cloud


if __name__ == "__main__":
    main(tiny)
