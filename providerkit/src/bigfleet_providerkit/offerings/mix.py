"""The default mix: what a provider offers without --offerings."""

from collections.abc import Sequence
from dataclasses import replace

from bigfleet_providerkit.offerings.offering import Offering
from bigfleet_providerkit.offerings.parse import Dialect, parse_offering, refuse_clashes
from bigfleet_providerkit.spec import Bucket


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """Split a number by weights as evenly as possible; earlier ones get what does not divide."""
    whole = sum(weights)
    if whole == 0:
        return [0 for _ in weights]
    counts = [total * weight // whole for weight in weights]
    rest = [(-(total * weight % whole), n) for n, weight in enumerate(weights)]
    for _, n in sorted(rest)[: total - sum(counts)]:
        counts[n] += 1
    return counts


def default_offerings(mix: Sequence[Bucket], seed_count: int, dialect: Dialect) -> list[Offering]:
    """The buckets of a provider with their share of `--seed-count`."""
    shared = [bucket for bucket in mix if bucket.count is None]
    counts = iter(shares(seed_count, [bucket.share for bucket in shared]))
    offerings = []
    for number, bucket in enumerate(mix, 1):
        count = next(counts) if bucket.count is None else bucket.count
        offering = parse_offering({**bucket.offering, "count": count}, number, dialect)
        offerings.append(replace(offering, first=bucket.first))
    refuse_clashes(offerings)
    return offerings
