"""What a cloud refuses: more than a quota, more than there is in stock, calls that come too fast.

Pools count who holds what, so that giving back is exact whatever way an object went. Buckets fill
with time and say when the next call will be taken.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from bigfleet_fakecloud.errors import Problem, ScriptError, Throttled

Key = tuple[str, ...]


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class Pool:
    """Limits by key, and holdings by object. A key without a limit is endless."""

    def __init__(self, refuse: Callable[[str], Problem]) -> None:
        self._refuse = refuse
        self._limits: dict[Key, int] = {}
        self._held: dict[Key, int] = defaultdict(int)
        self._holdings: dict[str, list[tuple[Key, int]]] = {}

    def limit(self, key: Key, count: int | None) -> None:
        """Set or lift a limit. What is held above a lower one stays held."""
        if count is None:
            self._limits.pop(key, None)
        elif _is_count(count):
            self._limits[key] = count
        else:
            raise ScriptError(f"a limit is a whole number from 0 on or null, not {count!r}")

    def check(self, key: Key, amount: int = 1) -> None:
        """Refuse when so much more would be too much."""
        limit = self._limits.get(key)
        if limit is not None and self._held[key] + amount > limit:
            name = "/".join(key)
            raise self._refuse(f"{name}: {self._held[key]} of {limit} in use, {amount} more asked")

    def hold(self, ref: str, key: Key, amount: int = 1) -> None:
        """Take it for an object, or refuse."""
        self.check(key, amount)
        self._held[key] += amount
        self._holdings.setdefault(ref, []).append((key, amount))

    def release(self, ref: str) -> None:
        """Give back everything that an object held; nothing the second time."""
        for key, amount in self._holdings.pop(ref, ()):
            self._held[key] -= amount

    def held(self, key: Key) -> int:
        """How much is in use."""
        return self._held.get(key, 0)

    @property
    def limits(self) -> dict[Key, int]:
        """The limits that are set."""
        return dict(self._limits)


@dataclass(slots=True)
class Bucket:
    """So many calls a second, and so many at once."""

    rate: float
    burst: float
    level: float = field(init=False)
    since: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not (self.rate > 0 and self.burst >= 1):
            raise ScriptError(
                f"a bucket has a rate above 0 and a burst from 1 on, not {self.rate}, {self.burst}"
            )
        self.level = self.burst

    def wait(self, now: float) -> float:
        """0 when a call would be taken now, else the seconds until one would be."""
        if self.since is not None:
            self.level = min(self.burst, self.level + max(now - self.since, 0.0) * self.rate)
        self.since = now
        # The sum of many small fills may miss a whole call by a rounding.
        return 0.0 if self.level >= 1.0 - 1e-6 else (1.0 - self.level) / self.rate

    def take(self) -> None:
        """Count a call."""
        self.level = max(self.level - 1.0, 0.0)


class Throttle:
    """Buckets by call name; `*` is the bucket that all calls share."""

    def __init__(self) -> None:
        self._buckets: dict[str, Bucket] = {}
        self.refused: Counter[str] = Counter()
        """How many calls of each name came too fast."""

    def limit(self, op: str, rate: float | None, burst: float = 1.0) -> None:
        """Set a bucket, or take it away."""
        if rate is None:
            self._buckets.pop(op, None)
        else:
            self._buckets[op] = Bucket(rate, burst)

    def take(self, op: str, now: float) -> None:
        """Let a call through or refuse it with the whole seconds that HTTP can say."""
        buckets = [self._buckets[name] for name in (op, "*") if name in self._buckets]
        wait = max((bucket.wait(now) for bucket in buckets), default=0.0)
        if wait > 0:
            self.refused[op] += 1
            raise Throttled(f"too many calls of {op}", float(math.ceil(wait)))
        for bucket in buckets:
            bucket.take()
