"""The control API: what a test in another process does to a running cloud.

    GET    /_control/state                            time, counts, delays, limits, refused calls
    POST   /_control/advance                          {seconds}; virtual time only
    PATCH  /_control/delays                           {latency, lag_get, lag_list, pace, transition}
    PUT    /_control/stock  /_control/quota           {key: [type, zone], limit: 3 | null}
    PUT    /_control/throttle                         {op, rate | null, burst}
    POST   /_control/faults                           a rule; answers its number
    GET    /_control/faults/{number}                  how often it applied
    DELETE /_control/faults  /_control/faults/{n}
    GET    /_control/calls                            what came, ?op= picks
    GET    /_control/resources/{kind}                 the truth, without lag
    POST   /_control/resources/{kind}/{ref}/{event}   an event of its life; delete; untag
    GET    /_control/guests/{ref}                     what happened inside a host
    PATCH  /_control/guests                           a lever of the hooks, see `guests.levers`

It is never slow, throttled or faulty. What it cannot do it refuses with 400 and the reason.
"""

from collections.abc import Callable
from dataclasses import asdict

from bigfleet_fakecloud.behaviour.faults import Rule
from bigfleet_fakecloud.behaviour.limits import Key, Pool
from bigfleet_fakecloud.cloud import Cloud
from bigfleet_fakecloud.errors import FakeCloudError, NotFound, ScriptError
from bigfleet_fakecloud.http.call import Call, Reply
from bigfleet_fakecloud.state.collection import Resource

PREFIX = "/_control/"


def shown(resource: Resource) -> dict[str, object]:
    """An object as the control API shows it."""
    return {
        "ref": resource.ref,
        "state": resource.state,
        "created": resource.created,
        "changed": resource.changed,
        "fields": dict(resource.fields),
        "tags": dict(resource.tags),
    }


class Control:
    """Answers the calls below /_control."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._verbs: dict[tuple[str, str], Callable[[Call, list[str]], Reply]] = {
            ("GET", "state"): self._state,
            ("POST", "advance"): self._advance,
            ("PATCH", "delays"): self._delays,
            ("PUT", "stock"): lambda call, _: self._limit(self._cloud.stock, call),
            ("PUT", "quota"): lambda call, _: self._limit(self._cloud.quota, call),
            ("PUT", "throttle"): self._throttle,
            ("POST", "faults"): self._add_fault,
            ("GET", "faults"): self._fault,
            ("DELETE", "faults"): self._remove_faults,
            ("GET", "calls"): self._calls,
            ("GET", "resources"): self._resources,
            ("POST", "resources"): self._event,
        }

    def answer(self, call: Call) -> Reply:
        """Do it, or say why not."""
        first, *rest = call.path.removeprefix(PREFIX).split("/")
        try:
            key = (call.method, first)
            verb = self._verbs.get(key) or self._cloud.levers.get(key)
            if verb is None:
                raise NotFound(f"the control API has no {call.method} {call.path}")
            with self._cloud.timeline.turn():
                return verb(call, rest)
        except FakeCloudError as error:
            status = 404 if isinstance(error, NotFound) else 400
            return Reply(status, {"error": str(error)})

    def _state(self, call: Call, rest: list[str]) -> Reply:
        cloud = self._cloud
        body = {
            "name": cloud.name,
            "now": cloud.timeline.now(),
            "delays": asdict(cloud.delays),
            "calls": dict(cloud.counts),
            "refused": [asdict(seen) for seen in cloud.refused],
            "stock": [{"key": key, "limit": n} for key, n in cloud.stock.limits.items()],
            "quota": [{"key": key, "limit": n} for key, n in cloud.quota.limits.items()],
            "resources": {kind: len(c.everything()) for kind, c in cloud.collections.items()},
            "facts": dict(cloud.facts),
        }
        return Reply(body=body)

    def _advance(self, call: Call, rest: list[str]) -> Reply:
        self._cloud.advance(_number(call.only("seconds").get("seconds"), "seconds"))
        return Reply(body={"now": self._cloud.timeline.now()})

    def _delays(self, call: Call, rest: list[str]) -> Reply:
        self._cloud.delays.turn(call.json())
        return Reply(body=asdict(self._cloud.delays))

    def _limit(self, pool: Pool, call: Call) -> Reply:
        body = call.only("key", "limit")
        limit = body.get("limit")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
            raise ScriptError(f"limit is a whole number or null, not {limit!r}")
        pool.limit(_key(body.get("key")), limit)
        return Reply(204)

    def _throttle(self, call: Call, rest: list[str]) -> Reply:
        body = call.only("op", "rate", "burst")
        rate = body.get("rate")
        self._cloud.throttle.limit(
            str(body.get("op", "*")),
            None if rate is None else _number(rate, "rate"),
            _number(body.get("burst", 1), "burst"),
        )
        return Reply(204)

    def _add_fault(self, call: Call, rest: list[str]) -> Reply:
        return Reply(201, {"number": self._cloud.faults.add(Rule.parse(call.json()))})

    def _fault(self, call: Call, rest: list[str]) -> Reply:
        return Reply(body={"fired": self._cloud.faults.fired(_whole(rest))})

    def _remove_faults(self, call: Call, rest: list[str]) -> Reply:
        if rest:
            self._cloud.faults.remove(_whole(rest))
        else:
            self._cloud.faults.clear()
        return Reply(204)

    def _calls(self, call: Call, rest: list[str]) -> Reply:
        op = call.query.get("op")
        found = [asdict(seen) for seen in self._cloud.calls if op in (None, seen.op)]
        return Reply(body={"calls": found})

    def _resources(self, call: Call, rest: list[str]) -> Reply:
        if len(rest) != 1 or rest[0] not in self._cloud.collections:
            raise NotFound(f"kinds are {', '.join(sorted(self._cloud.collections))}")
        found = self._cloud.collections[rest[0]].everything()
        return Reply(body={"resources": [shown(resource) for resource in found]})

    def _event(self, call: Call, rest: list[str]) -> Reply:
        if len(rest) != 3 or rest[0] not in self._cloud.collections:
            raise NotFound("name it as resources/<kind>/<ref>/<event>")
        collection, ref, event = self._cloud.collections[rest[0]], rest[1], rest[2]
        if event == "delete":
            collection.vanish(ref)
        elif event == "untag":
            collection.edit(ref, tags={})
        else:
            collection.happen(ref, event)
        return Reply(204)


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScriptError(f"{name} is a number, not {value!r}")
    return float(value)


def _whole(rest: list[str]) -> int:
    if len(rest) != 1 or not rest[0].isdecimal():
        raise ScriptError(f"a rule is named by its number, not {'/'.join(rest)!r}")
    return int(rest[0])


def _key(value: object) -> Key:
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return tuple(str(part) for part in value)
    raise ScriptError(f'key is a list of texts such as ["m1", "zone-a"], not {value!r}')
