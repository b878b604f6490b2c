"""Hetzner Cloud on one page, imitated for tests: servers, actions, types, and what orders refer to.

It is a process of its own, so that a provider can be killed and find everything again:

    python providers/hetzner/tests/support/hetzner_cloud.py --addr 127.0.0.1:9090

Names of servers are unique, every mutation is answered with an action, listings are pages of at
most 50, and labels are replaced as a whole, as in the real API. Guests answer SSH.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import Any

from bigfleet_fakecloud import (
    Call,
    Cloud,
    Guests,
    Injected,
    Life,
    Problem,
    Reply,
    Resource,
    Then,
    Verb,
    main,
    numbered_page,
)
from bigfleet_fakecloud.state.timeline import Clock

LOCATIONS = {"nbg1": "eu-central", "fsn1": "eu-central", "ash": "us-east"}
IN = ("initializing", "starting", "running", "off")
SERVER = Life(
    first="initializing",
    steps={
        "initializing": Then("starting", after=0.03, spread=0.5),
        "starting": Then("running", after=0.03, spread=0.5),
        "deleting": Then("deleted", after=0.02),
    },
    verbs={
        "poweron": Verb.move("off", to="starting", stays=("starting", "running")),
        "delete": Verb.move(*IN, to="deleting", stays=("deleting", "deleted")),
    },
    events={"stop": "off", "terminate": "deleted"},
    released=frozenset({"deleted"}),
    vanishes={"deleted": 0.0},
)
CODES = {
    "bad_request": (422, "invalid_input"),
    "conflict": (409, "conflict"),
    "out_of_stock": (412, "resource_unavailable"),
    "quota_exceeded": (403, "resource_limit_exceeded"),
    "throttled": (429, "rate_limit_exceeded"),
    "unavailable": (503, "unavailable"),
}
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
LABEL_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
HOSTNAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,61}[A-Za-z0-9])?")
LONGEST_USER_DATA = 32 * 1024
FIELDS = (
    "name", "server_type", "image", "location", "ssh_keys", "networks", "firewalls", "user_data",
    "labels", "placement_group", "public_net", "start_after_create",
)  # fmt: skip


@dataclass(frozen=True)
class ServerTypeRow:
    """One row of the price list."""

    id: int
    name: str
    cores: int
    memory: float
    hourly: float
    architecture: str = "x86"
    deprecated: bool = False

    def shown(self) -> dict[str, object]:
        """As GET /server_types has it: prices are texts, net and gross, by location."""
        price = {"net": f"{self.hourly:.10f}", "gross": f"{self.hourly * 1.19:.16f}"}
        at = "2026-01-01T00:00:00+00:00"
        return {
            "id": self.id, "name": self.name, "description": self.name.upper(), "disk": 40,
            "cores": self.cores, "memory": self.memory, "storage_type": "local",
            "cpu_type": "shared", "architecture": self.architecture, "category": "cost_optimized",
            "deprecated": self.deprecated,
            "deprecation": {"announced": at, "unavailable_after": at} if self.deprecated else None,
            "prices": [
                {"location": place, "price_hourly": price, "price_monthly": price}
                for place in LOCATIONS
            ],
        }  # fmt: skip


TYPES = [
    ServerTypeRow(104, "cx22", 2, 4.0, 0.0061),
    ServerTypeRow(105, "cx32", 4, 8.0, 0.0112),
    ServerTypeRow(25, "cpx41", 8, 16.0, 0.0441),
    ServerTypeRow(45, "cax11", 2, 4.0, 0.0062, "arm"),
    ServerTypeRow(1, "cx11", 1, 2.0, 0.0050, deprecated=True),
]
IMAGES: list[dict[str, Any]] = [
    {"id": 1001, "name": "ubuntu-24.04", "type": "system", "architecture": "x86", "labels": {}},
    {"id": 1002, "name": "ubuntu-24.04", "type": "system", "architecture": "arm", "labels": {}},
    {"id": 1003, "name": None, "type": "snapshot", "architecture": "x86",
     "labels": {"role": "node"}},
]  # fmt: skip


class HetznerCloud:
    """The routes, and what they share."""

    def __init__(self, seed: int, clock: Clock | None = None) -> None:
        self.cloud = Cloud("hetzner", seed=seed, dialect=dialect, clock=clock)
        self.servers = self.cloud.collection("servers", SERVER)
        self.guests = Guests(self.cloud)
        self.guests.serve_ssh()
        self.guests.follow(
            self.servers, ("running",), lambda server: str(server.fields["user_data"])
        )
        assert self.guests.ssh is not None
        self.cloud.facts["ssh_key"] = str(self.guests.ssh.client_key)
        self.types = list(TYPES)
        self.bad_types: object = None
        self.read_only = False
        self.actions: dict[int, dict[str, object]] = {}
        self.action_errors: list[dict[str, str]] = []
        self.things: dict[str, list[dict[str, Any]]] = {
            "networks": [{"id": 501, "name": "nodes"}],
            "firewalls": [{"id": 601, "name": "nodes"}],
            "placement_groups": [{"id": 701, "name": "spread", "type": "spread"}],
            "ssh_keys": [],
        }
        self._number = 40_000_000
        self._route()

    def _route(self) -> None:
        one = "/v1/servers/{id}"
        routes: list[tuple[str, str, str, Callable[[Call], Reply]]] = [
            ("POST", "/v1/servers", "CreateServer", self.create),
            ("GET", "/v1/servers", "ListServers", self.list),
            ("GET", one, "GetServer", self.get),
            ("DELETE", one, "DeleteServer", self.delete),
            ("PUT", one, "UpdateLabels", self.update),
            ("POST", f"{one}/actions/poweron", "PowerOn", self.power_on),
            ("GET", "/v1/actions/{id}", "GetAction", self.action),
            ("GET", "/v1/server_types", "ServerTypes", self.server_types),
            ("GET", "/v1/images", "Images", self.images),
            ("GET", "/v1/images/{id}", "Images", self.image),
            ("GET", "/v1/networks", "Networks", self.named("networks")),
            ("GET", "/v1/firewalls", "Firewalls", self.named("firewalls")),
            ("GET", "/v1/placement_groups", "PlacementGroups", self.named("placement_groups")),
            ("GET", "/v1/ssh_keys", "SSHKeys", self.named("ssh_keys")),
            ("POST", "/v1/ssh_keys", "SSHKeys", self.add_key),
        ]
        for method, path, op, handler in routes:
            self.cloud.route(method, path, op)(self.authorised(handler))

    def create(self, call: Call) -> Reply:
        """A server that starts. Its name is unique in the project."""
        body = call.only(*FIELDS)
        name, user_data = str(body.get("name", "")), str(body.get("user_data") or "")
        row = next((it for it in self.types if body.get("server_type") in (it.name, it.id)), None)
        image = next((it for it in IMAGES if it["id"] == body.get("image")), None)
        location = str(body.get("location"))
        if not HOSTNAME.fullmatch(name):
            raise invalid("name is not a hostname")
        if any(server.fields["name"] == name for server in self.present()):
            raise Injected(409, "uniqueness_error", "server name is already used")
        if row is None or row.deprecated:
            raise invalid(f"server type {body.get('server_type')} is unknown or deprecated")
        if image is None or image["architecture"] != row.architecture:
            raise invalid("image not found or of another architecture")
        if location not in LOCATIONS:
            raise invalid(f"location {location} not found")
        if len(user_data.encode()) > LONGEST_USER_DATA:
            raise invalid("user_data is too long")
        labels = checked_labels(body.get("labels") or {})
        self.cloud.quota.check(("servers",))
        self.cloud.stock.check((row.name, location))
        self._number += 1
        ref = str(self._number)
        self.cloud.quota.hold(ref, ("servers",))
        self.cloud.stock.hold(ref, (row.name, location))
        fields = {
            "name": name, "type": row.name, "location": location, "user_data": user_data,
            "networks": body.get("networks") or [], "ssh_keys": body.get("ssh_keys") or [],
            "firewalls": body.get("firewalls") or [], "public_net": body.get("public_net"),
            "placement_group": body.get("placement_group"),
        }  # fmt: skip
        server = self.servers.create(ref, fields, labels)
        error = self.action_errors.pop(0) if self.action_errors else None
        if error is not None:
            self.servers.happen(ref, "terminate")
        action = self._action("create_server", ref, error)
        shown = self._shown(server)
        return Reply(
            201,
            {"server": shown, "action": action, "next_actions": [], "root_password": None},
        )

    def list(self, call: Call) -> Reply:
        """A page of the servers with these labels or this name."""
        wanted = [part.partition("=") for part in _parts(call.query.get("label_selector"))]
        name = call.query.get("name")
        found = self.servers.list(
            lambda server: (
                server.state != "deleted"
                and all(server.tags.get(key) == value for key, _, value in wanted)
                and name in (None, server.fields["name"])
            )
        )
        part = numbered_page(found, call)
        rows = [self._shown(server) for server in part.items]
        page = {
            "page": part.number, "per_page": part.size, "previous_page": part.previous,
            "next_page": part.next, "last_page": part.last, "total_entries": part.total,
        }  # fmt: skip
        return Reply(body={"servers": rows, "meta": {"pagination": page}})

    def get(self, call: Call) -> Reply:
        """One server."""
        return Reply(body={"server": self._shown(self._server(call))})

    def delete(self, call: Call) -> Reply:
        """The server ends, with its disk and its addresses."""
        server = self._server(call)
        self.servers.act(server.ref, "delete")
        return Reply(200, {"action": self._action("delete_server", server.ref)})

    def update(self, call: Call) -> Reply:
        """All labels of a server."""
        server, body = self._server(call), call.only("labels", "name")
        edited = self.servers.edit(server.ref, tags=checked_labels(body.get("labels") or {}))
        return Reply(body={"server": self._shown(edited)})

    def power_on(self, call: Call) -> Reply:
        """A server that is off starts again."""
        server = self._server(call)
        self.servers.act(server.ref, "poweron")
        return Reply(201, {"action": self._action("start_server", server.ref)})

    def action(self, call: Call) -> Reply:
        """How an action ended."""
        shown = self.actions.get(int(call.params["id"]))
        if shown is None:
            raise Injected(404, "not_found", "action not found")
        return Reply(body={"action": shown})

    def server_types(self, call: Call) -> Reply:
        """What servers there are, with their prices."""
        rows = self.bad_types if self.bad_types is not None else [it.shown() for it in self.types]
        return Reply(body={"server_types": rows, "meta": only_page()})

    def images(self, call: Call) -> Reply:
        """Images by name or label, and architecture."""
        name, arch = call.query.get("name"), call.query.get("architecture")
        wanted = [part.partition("=") for part in _parts(call.query.get("label_selector"))]
        rows = [
            image
            for image in IMAGES
            if name in (None, image["name"])
            and arch in (None, image["architecture"])
            and all(image["labels"].get(key) == value for key, _, value in wanted)
        ]
        return Reply(body={"images": rows, "meta": only_page()})

    def image(self, call: Call) -> Reply:
        """One image by its id."""
        found = [image for image in IMAGES if str(image["id"]) == call.params["id"]]
        if not found:
            raise Injected(404, "not_found", "image not found")
        return Reply(body={"image": found[0]})

    def named(self, kind: str) -> Callable[[Call], Reply]:
        """A listing of things by name or fingerprint."""

        def listed(call: Call) -> Reply:
            rows = [
                row
                for row in self.things[kind]
                if all(
                    row.get(key) == call.query[key]
                    for key in ("name", "fingerprint")
                    if key in call.query
                )
            ]
            return Reply(body={kind: rows, "meta": only_page()})

        return listed

    def add_key(self, call: Call) -> Reply:
        """A public key by which the owner of the project gets into new servers."""
        import asyncssh

        body = call.only("name", "public_key", "labels")
        public = asyncssh.import_public_key(str(body["public_key"]))
        fingerprint = public.get_fingerprint("md5").removeprefix("MD5:")
        keys = self.things["ssh_keys"]
        if any(row["fingerprint"] == fingerprint for row in keys):
            raise Injected(409, "uniqueness_error", "SSH key not unique")
        row = {"id": 801 + len(keys), **body, "fingerprint": fingerprint}
        keys.append(row)
        return Reply(201, {"ssh_key": row})

    def present(self) -> Sequence[Resource]:
        """Servers that are there."""
        return [it for it in self.servers.everything() if it.state not in ("deleting", "deleted")]

    def authorised(self, handler: Callable[[Call], Reply]) -> Callable[[Call], Reply]:
        """Refuse a call without a token, or a change with a token that may only read."""

        @wraps(handler)
        def checked(call: Call) -> Reply:
            token = call.headers.get("authorization", "").removeprefix("Bearer ")
            if not token or token == "expired":
                raise Injected(401, "unauthorized", "unable to authenticate")
            if call.method != "GET" and (self.read_only or token == "read-only"):
                raise Injected(403, "token_readonly", "token is only allowed to make GET requests")
            return handler(call)

        return checked

    def _server(self, call: Call) -> Resource:
        found = self.servers.list(lambda server: server.ref == call.params["id"])
        if not found or found[0].state == "deleted":
            raise Injected(404, "not_found", f"server with ID {call.params['id']} not found")
        return found[0]

    def _action(
        self, command: str, ref: str, error: Mapping[str, str] | None = None
    ) -> dict[str, object]:
        number = len(self.actions) + 1
        shown: dict[str, object] = {
            "id": number, "command": command, "status": "error" if error else "success",
            "progress": 100, "started": _time(self.cloud.timeline.now()), "finished": None,
            "resources": [{"id": int(ref), "type": "server"}], "error": error,
        }  # fmt: skip
        self.actions[number] = shown
        return shown

    def _shown(self, server: Resource) -> dict[str, object]:
        fields = server.fields
        row = next((it for it in TYPES if it.name == fields["type"]), TYPES[0])
        address = self.guests.address(server.ref)
        networks = fields["networks"]
        assert isinstance(networks, list)
        return {
            "id": int(server.ref), "name": fields["name"], "status": server.state,
            "created": _time(server.created), "labels": dict(server.tags),
            "server_type": row.shown(),
            "location": {"id": 1, "name": fields["location"]},
            "public_net": {
                "ipv4": {"id": 1, "ip": address, "blocked": False, "dns_ptr": ""},
                "ipv6": {"id": 2, "ip": "2001:db8::/64", "blocked": False, "dns_ptr": []},
                "floating_ips": [], "firewalls": [],
            },
            "private_net": [
                {"network": number, "ip": address, "alias_ips": [], "mac_address": ""}
                for number in networks
            ],
            "locked": False, "rescue_enabled": False, "backup_window": None,
            "protection": {"delete": False, "rebuild": False}, "volumes": [],
            "image": None, "iso": None, "placement_group": None,
        }  # fmt: skip


def dialect(problem: Problem) -> Reply:
    """A refusal as the API words it: one code, one sentence."""
    status, code = CODES.get(problem.code, (problem.status, problem.code))
    if isinstance(problem, Injected):
        status, code = problem.status, problem.code
    headers = {}
    if status == 429:
        headers = {"RateLimit-Limit": "3600", "RateLimit-Remaining": "0"}
    error = {"code": code, "message": problem.text, "details": {}}
    return Reply(status, {"error": error}, headers)


def invalid(text: str) -> Problem:
    """A request that will always be refused."""
    return Injected(422, "invalid_input", text)


def checked_labels(labels: object) -> dict[str, str]:
    """Labels within the limits of the API."""
    assert isinstance(labels, dict)
    for key, value in labels.items():
        if not LABEL_KEY.fullmatch(str(key)) or not LABEL_VALUE.fullmatch(str(value)):
            raise invalid(f"invalid label {key}={value}")
    return {str(key): str(value) for key, value in labels.items()}


def only_page() -> dict[str, object]:
    """What a listing says of its only page."""
    return {
        "pagination": {
            "page": 1, "per_page": 50, "previous_page": None, "next_page": None, "last_page": 1,
            "total_entries": None,
        }
    }  # fmt: skip


def _parts(selector: str | None) -> Iterable[str]:
    return selector.split(",") if selector else ()


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


if __name__ == "__main__":
    main(lambda seed: HetznerCloud(seed).cloud)
