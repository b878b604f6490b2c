"""DigitalOcean on one page, imitated for tests: Droplets, their actions, tags and sizes.

It is a process of its own, so that a provider can be killed and find everything again; the SDK
speaks https only, so it is served with TLS:

    python providers/digitalocean/tests/support/digitalocean_cloud.py --addr 127.0.0.1:9090 --tls \
        --facts facts.json

Droplets start in their own time, agents in them poll the provider and run its scripts in a real
shell. `facts` name the authority of the cloud (`ca`), and the certificate and key that a provider
of this machine may use for its agents.
"""

import atexit
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path

from bigfleet_fakecloud import (
    BadRequest,
    Call,
    Cloud,
    Conflict,
    Guests,
    Injected,
    Life,
    NotFound,
    OutOfStock,
    Problem,
    QuotaExceeded,
    Reply,
    Resource,
    TestAuthority,
    Then,
    Throttled,
    Verb,
    main,
    numbered_page,
    text_of,
)
from bigfleet_fakecloud.state.timeline import Clock

HOUR_CALLS = 5000
MOST_USER_DATA = 64 * 1024
FIRST_ID = 400_000_000
TAG = re.compile(r"[A-Za-z0-9:_-]{1,255}")
NAME = re.compile(r"[a-zA-Z0-9.-]{1,253}")
REGIONS = ("nyc3", "sfo3", "ams3")
IMAGES = ("ubuntu-24-04-x64", 12345678)
KEYS = (111, "3b:16:bf:e4:8b:00:8b:b8:59:8c:a9:d3:f0:19:45:fa")
VPCS = {"vpc-nyc3": "nyc3", "vpc-sfo3": "sfo3"}
# slug: (vCPUs, MiB, dollars an hour, GPUs, model)
SIZES: dict[str, tuple[int, int, float, int, str]] = {
    "s-1vcpu-2gb": (1, 2048, 0.01786, 0, ""),
    "s-2vcpu-4gb": (2, 4096, 0.03571, 0, ""),
    "s-4vcpu-8gb": (4, 8192, 0.07143, 0, ""),
    "c-4": (4, 8192, 0.125, 0, ""),
    "gpu-h100x1-80gb": (20, 245760, 3.39, 1, "nvidia_h100"),
    "gpu-mi300x8-1536gb": (160, 1966080, 15.92, 8, "amd_mi300x"),
}
DROPLET = Life(
    first="new",
    steps={
        "new": Then("active", after=0.05, spread=0.5),
        "starting": Then("active", after=0.03),
    },
    verbs={
        "power_on": Verb.move("off", to="starting", stays=("active", "starting")),
        "destroy": Verb.move("new", "active", "off", "starting", to="archive", stays=("archive",)),
    },
    events={"stop": "off", "terminate": "archive"},
    released=frozenset({"archive"}),
    vanishes={"archive": 0.03},
)
SHOWN_AS = {"starting": "off"}
CREATE_FIELDS = (
    "name", "region", "size", "image", "ssh_keys", "backups", "ipv6", "monitoring", "tags",
    "user_data", "vpc_uuid", "with_droplet_agent",
)  # fmt: skip
WORDS: dict[type[Problem], tuple[int, str, str]] = {
    Throttled: (429, "too_many_requests", "API Rate limit exceeded."),
    OutOfStock: (422, "unprocessable_entity", "Size is not available in this region."),
    QuotaExceeded: (
        422, "unprocessable_entity",
        "creating this/these droplet(s) will exceed your droplet limit",
    ),
    NotFound: (404, "not_found", "The resource you were accessing could not be found."),
    Conflict: (422, "unprocessable_entity", "Droplet already has a pending event."),
    BadRequest: (422, "unprocessable_entity", ""),
}  # fmt: skip


def worded(problem: Problem) -> Reply:
    """A problem as the API words it."""
    status, code, text = WORDS.get(type(problem), (problem.status, problem.code, ""))
    body = {"id": code, "message": text or problem.text, "request_id": "4d9d8375"}
    return Reply(status, body)


class DigitaloceanCloud:
    """The handlers, and what they share."""

    def __init__(self, seed: int, clock: Clock | None = None) -> None:
        self.cloud = Cloud("digitalocean", seed=seed, dialect=worded, clock=clock)
        self.droplets = self.cloud.collection("droplets", DROPLET)
        self.guests = Guests(self.cloud)
        self.guests.follow(self.droplets, ("active",), lambda row: str(row.fields["user_data"]))
        self.guests.poll_agents()
        self.tags: dict[str, str] = {}
        """Names of the account's tags, by their lower case: the first spelling stays."""
        self.refused_scopes: set[str] = set()
        self.sizes_body: Callable[[], object] | None = None
        self._numbers = FIRST_ID
        self._calls_left = HOUR_CALLS
        for method, path, op, scope, handler in (
            ("POST", "/v2/droplets", "CreateDroplet", "droplet:create", self.create),
            ("GET", "/v2/droplets", "ListDroplets", "droplet:read", self.list_droplets),
            ("GET", "/v2/droplets/{id}", "GetDroplet", "droplet:read", self.get),
            ("DELETE", "/v2/droplets/{id}", "DeleteDroplet", "droplet:delete", self.destroy),
            ("POST", "/v2/droplets/{id}/actions", "PowerOn", "droplet:update", self.act),
            ("GET", "/v2/tags", "ListTags", "tag:read", self.list_tags),
            ("POST", "/v2/tags", "Tag", "tag:create", self.create_tag),
            ("POST", "/v2/tags/{tag}/resources", "Tag", "tag:create", self.assign),
            ("DELETE", "/v2/tags/{tag}/resources", "Untag", "tag:delete", self.unassign),
            ("DELETE", "/v2/tags/{tag}", "DeleteTag", "tag:delete", self.delete_tag),
            ("GET", "/v2/sizes", "Sizes", "sizes:read", self.sizes),
        ):
            self.cloud.route(method, path, op)(self._authorised(handler, scope))
        folder = Path(tempfile.mkdtemp(prefix="bigfleet-do-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        agents = TestAuthority.make(folder)
        self.cloud.facts["agent_cert"] = str(agents.certificate)
        self.cloud.facts["agent_key"] = str(agents.key)
        self.cloud.facts["agent_ca"] = str(agents.ca)

    def present(self) -> list[Resource]:
        """Droplets that are not on their way out."""
        return [row for row in self.droplets.everything() if row.state != "archive"]

    def create(self, call: Call) -> Reply:
        """One Droplet. There is no idempotency: the same order again makes another."""
        body = call.only(*CREATE_FIELDS)
        name, region, size = (text_of(body, key) for key in ("name", "region", "size"))
        self._check_order(body, name, region, size)
        self.cloud.stock.check((size, region))
        self.cloud.quota.check(("droplets",))
        self._numbers += 1
        ref = str(self._numbers)
        self.cloud.stock.hold(ref, (size, region))
        self.cloud.quota.hold(ref, ("droplets",))
        asked_for = body.get("tags") or []
        assert isinstance(asked_for, list)
        tags = {self._tag_made(str(tag)): "" for tag in asked_for}
        fields = {
            "name": name, "region": region, "size": size, "image": body["image"],
            "user_data": body.get("user_data", ""), "vpc": body.get("vpc_uuid", ""),
        }  # fmt: skip
        made = self.droplets.create(ref, fields, tags)
        links = {"actions": [{"id": self._numbers, "rel": "create", "href": f"/v2/actions/{ref}"}]}
        return Reply(202, {"droplet": self._shown(made), "links": links})

    def _check_order(self, body: Mapping[str, object], name: str, region: str, size: str) -> None:
        user_data = body.get("user_data", "")
        keys, tags = body.get("ssh_keys") or [], body.get("tags") or []
        if not NAME.fullmatch(name):
            raise BadRequest("Only valid hostname characters are allowed. (a-z, A-Z, 0-9, . and -)")
        if region not in REGIONS:
            raise BadRequest("You specified an invalid region for Droplet creation.")
        if size not in SIZES:
            raise BadRequest("You specified an invalid size for Droplet creation.")
        if body.get("image") not in IMAGES:
            raise BadRequest("You specified an invalid image for Droplet creation.")
        if body.get("vpc_uuid") and VPCS.get(str(body["vpc_uuid"])) != region:
            raise BadRequest("VPC not found in the region of the Droplet")
        if not isinstance(keys, list) or any(key not in KEYS for key in keys):
            raise BadRequest(f"{keys} are invalid key identifiers for Droplet creation.")
        if not isinstance(tags, list) or not all(TAG.fullmatch(str(tag)) for tag in tags):
            raise BadRequest("Tags may contain letters, numbers, colons, dashes, and underscores")
        if not isinstance(user_data, str) or len(user_data.encode()) > MOST_USER_DATA:
            raise BadRequest("User data is too long (maximum is 65536 bytes)")

    def list_droplets(self, call: Call) -> Reply:
        """A page of the Droplets, those with a tag only."""
        wanted = call.query.get("tag_name", "").lower()
        found = self.droplets.list(
            lambda row: not wanted or wanted in {tag.lower() for tag in row.tags}
        )
        part = numbered_page(found, call, usual=20, most=200)
        return self._page(call, "droplets", [self._shown(row) for row in part.items], part.total)

    def get(self, call: Call) -> Reply:
        """One Droplet."""
        return Reply(body={"droplet": self._shown(self.droplets.get(call.params["id"]))})

    def destroy(self, call: Call) -> Reply:
        """Destroy a Droplet; it is listed for a moment more."""
        self.droplets.get(call.params["id"])
        self.droplets.act(call.params["id"], "destroy")
        return Reply(204)

    def act(self, call: Call) -> Reply:
        """The one action that a provider needs."""
        ref, kind = call.params["id"], text_of(call.only("type"), "type")
        self.droplets.get(ref)
        self.droplets.act(ref, kind)
        action = {"id": 1, "status": "in-progress", "type": kind, "resource_id": int(ref)}
        return Reply(201, {"action": action})

    def list_tags(self, call: Call) -> Reply:
        """A page of the account's tags, each with how many Droplets have it."""
        counts = Counter(tag for row in self.present() for tag in row.tags)
        names = sorted(self.tags.values())
        number, size = call.number("page", 1), call.number("per_page", 20)
        rows: list[dict[str, object]] = [
            {"name": name, "resources": {"count": counts[name]}}
            for name in names[(number - 1) * size : number * size]
        ]
        return self._page(call, "tags", rows, len(names))

    def create_tag(self, call: Call) -> Reply:
        """A tag of the account, unless it is there."""
        name = text_of(call.only("name"), "name")
        if not TAG.fullmatch(name):
            raise BadRequest("Tags may contain letters, numbers, colons, dashes, and underscores")
        return Reply(201, {"tag": {"name": self._tag_made(name), "resources": {"count": 0}}})

    def assign(self, call: Call) -> Reply:
        """Put a tag on Droplets. Only what exists can be put."""
        tag = self._existing(call)
        for ref in self._resources(call):
            self.droplets.edit(ref, tags={**self.droplets.get(ref).tags, tag: ""})
        return Reply(204)

    def unassign(self, call: Call) -> Reply:
        """Take a tag off Droplets."""
        tag = self._existing(call)
        for ref in self._resources(call):
            kept = {name: "" for name in self.droplets.get(ref).tags if name != tag}
            self.droplets.edit(ref, tags=kept)
        return Reply(204)

    def delete_tag(self, call: Call) -> Reply:
        """Delete a tag, and take it off everything that has it."""
        tag = self._existing(call)
        del self.tags[tag.lower()]
        for row in self.droplets.everything():
            if tag in row.tags:
                self.droplets.edit(row.ref, tags={t: "" for t in row.tags if t != tag})
        return Reply(204)

    def sizes(self, call: Call) -> Reply:
        """What is sold; a size in no region is out of stock everywhere."""
        if self.sizes_body is not None:
            return Reply(body=self.sizes_body())
        rows = [
            {
                "slug": slug, "vcpus": vcpus, "memory": memory, "disk": 80, "transfer": 4.0,
                "price_hourly": hourly, "price_monthly": hourly * 672, "regions": list(REGIONS),
                "available": True, "description": "Basic",
                **({"gpu_info": {"count": gpus, "model": model}} if gpus else {}),
            }
            for slug, (vcpus, memory, hourly, gpus, model) in SIZES.items()
        ]  # fmt: skip
        return self._page(call, "sizes", rows, len(rows))

    def _page(self, call: Call, kind: str, rows: list[dict[str, object]], total: int) -> Reply:
        """A page with the addresses of the others and the number of all rows."""
        number, size = call.number("page", 1), call.number("per_page", 20)
        last = max(1, -(-total // size))
        links = {"last": call.url(page=last), "next": call.url(page=number + 1)}
        pages = {"pages": links} if number < last else {}
        return Reply(body={kind: rows, "links": pages, "meta": {"total": total}})

    def _resources(self, call: Call) -> list[str]:
        rows = call.only("resources").get("resources")
        if not isinstance(rows, list) or any(row["resource_type"] != "droplet" for row in rows):
            raise BadRequest("resources are droplets by resource_id and resource_type")
        return [str(row["resource_id"]) for row in rows]

    def _existing(self, call: Call) -> str:
        name = self.tags.get(call.params["tag"].lower())
        if name is None:
            raise NotFound("no such tag")
        return name

    def _tag_made(self, name: str) -> str:
        return self.tags.setdefault(name.lower(), name)

    def _shown(self, row: Resource) -> dict[str, object]:
        fields, region, size = row.fields, str(row.fields["region"]), str(row.fields["size"])
        vcpus, memory, *_ = SIZES[size]
        address = {"netmask": "255.255.240.0", "ip_address": self.guests.address(row.ref)}
        return {
            "id": int(row.ref),
            "name": fields["name"],
            "vcpus": vcpus,
            "memory": memory,
            "disk": 80,
            "locked": row.state in ("new", "starting"),
            "status": SHOWN_AS.get(row.state, row.state),
            "created_at": datetime.fromtimestamp(row.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "features": ["private_networking"],
            "image": {"id": 1, "slug": fields["image"]},
            "size_slug": size,
            "networks": {"v4": [{**address, "type": "public"}], "v6": []},
            "region": {"slug": region, "name": region, "available": True},
            "tags": list(row.tags),
            "vpc_uuid": fields["vpc"],
        }

    def _authorised(self, handler: Callable[[Call], Reply], scope: str) -> Callable[[Call], Reply]:
        """Refuse a call without a token, or with one that lacks a scope; count the hour's calls."""

        @wraps(handler)
        def checked(call: Call) -> Reply:
            if call.headers.get("authorization", "") in ("", "Bearer expired"):
                raise Injected(401, "Unauthorized", "Unable to authenticate you")
            if scope in self.refused_scopes:
                raise Injected(403, "Forbidden", "You are not authorized to perform this operation")
            self._calls_left = max(0, self._calls_left - 1)
            limits = {
                "ratelimit-limit": str(HOUR_CALLS),
                "ratelimit-remaining": str(self._calls_left),
                "ratelimit-reset": str(int(self.cloud.timeline.now()) + 3600),
            }
            reply = handler(call)
            return replace(reply, headers={**limits, **reply.headers})

        return checked


if __name__ == "__main__":
    main(lambda seed: DigitaloceanCloud(seed).cloud)
