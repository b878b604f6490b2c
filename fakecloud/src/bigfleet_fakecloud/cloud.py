"""The cloud: its world, its routes, and the way of a call through both.

    record -> latency -> rules before -> throttle -> handler -> rules after -> answer, or silence

A handler runs alone, at one moment, and its effect is whole or not there. This module decides
what is answered; carrying it over HTTP is left to `app`, and turning it from outside to
`control`.
"""

import contextlib
import os
import random
import re
import signal
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from starlette.routing import compile_path

from bigfleet_fakecloud.behaviour.background import Background
from bigfleet_fakecloud.behaviour.delays import Delays
from bigfleet_fakecloud.behaviour.faults import Effect, Faults, Moment, Rule
from bigfleet_fakecloud.behaviour.limits import Pool, Throttle
from bigfleet_fakecloud.errors import NotFound, OutOfStock, Problem, QuotaExceeded, ScriptError
from bigfleet_fakecloud.http.call import Call, Reply
from bigfleet_fakecloud.state.collection import Collection, Resource
from bigfleet_fakecloud.state.life import Life
from bigfleet_fakecloud.state.operations import Operations
from bigfleet_fakecloud.state.timeline import Clock, RealClock, Timeline, VirtualClock
from bigfleet_fakecloud.state.tokens import Tokens

Handler = Callable[[Call], Reply]
Dialect = Callable[[Problem], Reply]
Lever = Callable[[Call, list[str]], Reply]
CALLS_KEPT = 20_000
TOKEN_LIFE = 86_400.0


class AnswerLost(Exception):
    """The answer is lost."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call that came, and the status it got; 0 when the connection was cut."""

    at: float
    op: str
    method: str
    path: str
    status: int


@dataclass(frozen=True, slots=True)
class Route:
    """Where a call goes. Several may share a path and be told apart by `when`."""

    method: str
    pattern: re.Pattern[str]
    op: str
    handler: Handler
    when: Callable[[Call], bool]

    def match(self, call: Call) -> Call | None:
        """The call with its placeholders, if it goes here."""
        if call.method != self.method:
            return None
        found = self.pattern.match(call.path)
        if found is None:
            return None
        filled = replace(call, params=found.groupdict())
        return filled if self.when(filled) else None


def plain_dialect(problem: Problem) -> Reply:
    """How a cloud without a taste of its own words a problem."""
    return Reply(problem.status, {"error": {"code": problem.code, "message": problem.text}})


class Cloud:
    """One imitated cloud.

    `facts` is what a caller must know besides the address (a port, a key file); a process writes it
    where `--facts` says. `levers` are further verbs of the control API, by method and first word.
    """

    def __init__(
        self,
        name: str,
        *,
        clock: Clock | None = None,
        seed: int = 1,
        dialect: Dialect = plain_dialect,
        token_life: float = TOKEN_LIFE,
    ) -> None:
        self.name = name
        self.background = Background()
        self.facts: dict[str, str] = {}
        self.levers: dict[tuple[str, str], Lever] = {}
        self.timeline = Timeline(clock or RealClock())
        self.rng = random.Random(seed)
        self.delays = Delays()
        # A generator of their own: adding a rule must not change the times of life cycles.
        self.faults = Faults(random.Random(f"faults {seed}"))
        self.operations = Operations(self.timeline, self.delays, self.rng, self.faults)
        self.quota = Pool(QuotaExceeded)
        self.stock = Pool(OutOfStock)
        self.throttle = Throttle()
        self.tokens = Tokens(self.timeline, token_life)
        self.collections: dict[str, Collection] = {}
        self.calls: deque[CallRecord] = deque(maxlen=CALLS_KEPT)
        self.counts: Counter[str] = Counter()
        self._dialect = dialect
        self._routes: list[Route] = []
        self._made = 0

    def collection(self, kind: str, life: Life) -> Collection:
        """A kind of object. What one holds is given back when its life says so, or it is gone."""
        if kind in self.collections:
            raise ScriptError(f"there is a collection {kind!r} already; choose another name")
        made = Collection(kind, life, self.timeline, self.delays, self.rng)

        def give_back(before: Resource | None, after: Resource | None) -> None:
            if before is not None and (after is None or after.state in life.released):
                self.quota.release(before.ref)
                self.stock.release(before.ref)

        made.listen(give_back)
        self.collections[kind] = made
        return made

    def route(
        self, method: str, path: str, op: str, when: Callable[[Call], bool] = lambda _: True
    ) -> Callable[[Handler], Handler]:
        """Let a function answer calls. `op` is the name under which rules and counts know them."""

        def register(handler: Handler) -> Handler:
            pattern, _, _ = compile_path(path)
            self._routes.append(Route(method, pattern, op, handler, when))
            return handler

        return register

    def new_ref(self, prefix: str) -> str:
        """An id that was never given, in the order of creation and the same for the same seed."""
        self._made += 1
        return f"{prefix}{self._made:06d}{self.rng.getrandbits(32):08x}"

    def advance(self, seconds: float) -> None:
        """Let virtual time pass, and with it whatever happens meanwhile."""
        if not isinstance(self.timeline.clock, VirtualClock):
            raise ScriptError("real time passes by itself; give the cloud a VirtualClock")
        self.timeline.clock.advance(seconds)
        with self.timeline.turn():
            pass

    @property
    def refused(self) -> list[CallRecord]:
        """Calls that no route took: what the real cloud does not offer, or the page forgot."""
        return [seen for seen in self.calls if seen.op == "?"]

    async def answer(self, call: Call) -> Reply:
        """What the cloud says, after the time it takes; `AnswerLost` when it says nothing."""
        route, filled = self._find(call)
        op = route.op if route else "?"
        try:
            reply = await self._through(route, op, filled)
        except AnswerLost:
            self._record(op, call, 0)
            raise
        except Problem as problem:
            reply = self._worded(problem)
        self._record(op, call, reply.status)
        return reply

    def _find(self, call: Call) -> tuple[Route | None, Call]:
        for route in self._routes:
            filled = route.match(call)
            if filled is not None:
                return route, filled
        return None, call

    async def _through(self, route: Route | None, op: str, call: Call) -> Reply:
        await self._pause(self.delays.latency)
        await self._obey(self._pick(op, Moment.BEFORE))
        with self.timeline.turn():
            self.throttle.take(op, self.timeline.now())
            if route is None:
                raise NotFound(f"{self.name} has no {call.method} {call.path}")
            reply = route.handler(call)
        await self._obey(self._pick(op, Moment.AFTER))
        return reply

    def _pick(self, op: str, moment: Moment) -> Rule | None:
        with self.timeline.turn():
            return self.faults.pick(op, moment)

    async def _obey(self, rule: Rule | None) -> None:
        if rule is None:
            return
        if rule.hook is not None:
            rule.hook()
        await self._pause(rule.delay)
        if rule.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rule.pid, signal.SIGKILL)
        if rule.effect in (Effect.DROP, Effect.KILL):
            raise AnswerLost
        if rule.effect is Effect.FAIL:
            raise rule.problem()

    async def _pause(self, seconds: float) -> None:
        if seconds > 0:
            await self.timeline.clock.sleep(seconds)

    def _worded(self, problem: Problem) -> Reply:
        reply = self._dialect(problem)
        if problem.retry_after is None:
            return reply
        headers: Mapping[str, str] = {"Retry-After": f"{problem.retry_after:g}"}
        return replace(reply, headers={**headers, **reply.headers})

    def _record(self, op: str, call: Call, status: int) -> None:
        with self.timeline.turn():
            seen = CallRecord(self.timeline.now(), op, call.method, call.path, status)
            self.calls.append(seen)
            self.counts[op] += 1
