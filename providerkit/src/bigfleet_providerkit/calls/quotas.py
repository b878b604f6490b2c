"""From the declared calls of a provider to their buckets, with what `--api-rate` changes."""

from collections.abc import Mapping, Sequence

from bigfleet_providerkit.calls.limiter import DEFAULT_RATE, Limiter
from bigfleet_providerkit.clock import Clock
from bigfleet_providerkit.errors import OptionError
from bigfleet_providerkit.spec import CallRate


def limiters_of(
    calls: Sequence[str | CallRate], overrides: Mapping[str, float], clock: Clock
) -> dict[str, Limiter]:
    """The bucket of every call name; names of one quota have the same."""
    quotas = [CallRate((call,), DEFAULT_RATE) if isinstance(call, str) else call for call in calls]
    names = [op for quota in quotas for op in quota.ops]
    unknown = sorted(set(overrides) - set(names))
    if unknown:
        raise OptionError(
            f"--api-rate: there is no call {unknown[0]!r}; choose from {', '.join(sorted(names))}"
        )
    limiters = {}
    for quota in quotas:
        given = [overrides[op] for op in quota.ops if op in overrides]
        if given and given[0] <= 0:
            raise OptionError(f"--api-rate: {given[0]:g} calls a second is not above 0")
        rate, burst = (given[0], None) if given else (quota.rate, quota.burst)
        bucket = Limiter(clock, rate, burst)
        limiters.update(dict.fromkeys(quota.ops, bucket))
    return limiters
