"""Offerings from a file or from text: JSON or YAML, every mistake named with its entry's number."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from bigfleet_providerkit.capacity.table import check_quantities
from bigfleet_providerkit.errors import OptionError
from bigfleet_providerkit.machines.state import CapacityType
from bigfleet_providerkit.offerings.offering import Offering

TAINT = re.compile(r"[^=:\s]+(=[^:\s]*)?:(NoSchedule|PreferNoSchedule|NoExecute)")
REFUSED_LABELS = frozenset(
    {"instance-type", "instance_type", "instanceType", "zone", "availability-zone",
     "availability_zone", "capacity-type", "capacity_type", "capacityType",
     "bigfleet.lucy.sh/capacity-type", "node.kubernetes.io/instance-type",
     "topology.kubernetes.io/zone"}
)  # fmt: skip
MOST_SLOTS = 1_000_000
POOL = re.compile(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a provider accepts: its own names for type and zone, its own fields, its types."""

    type_names: tuple[str, ...]
    zone_names: tuple[str, ...]
    extra_fields: tuple[str, ...]
    capacity_types: frozenset[CapacityType]
    size_of: Callable[[Offering], str] = lambda offering: ""


def read_offerings(source: str, dialect: Dialect) -> list[Offering]:
    """Offerings from a path or from the text itself."""
    where, text = _text_of(source)
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise OptionError(f"{where} does not parse: {' '.join(str(error).split())}") from error
    if isinstance(data, Mapping) and set(data) == {"offerings"}:
        data = data["offerings"]
    if not isinstance(data, Sequence) or isinstance(data, str) or not data:
        raise OptionError(f"{where}: expected a list of offerings with at least one entry")
    offerings = [parse_offering(entry, n, dialect) for n, entry in enumerate(data, 1)]
    refuse_clashes(offerings)
    return offerings


def _text_of(source: str) -> tuple[str, str]:
    if "\n" in source or source.lstrip().startswith(("[", "{", "- ")):
        return "--offerings", source
    try:
        return source, Path(source).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"offerings file {source} cannot be read: {error}") from error


class _Fields:
    """The fields of one entry, taken out one by one; what is left is unknown."""

    def __init__(self, entry: Mapping[str, object], where: str) -> None:
        self._left = dict(entry)
        self._where = where

    def complain(self, text: str) -> OptionError:
        return OptionError(f"{self._where}: {text}")

    def text(self, *names: str, required: bool = False) -> str:
        found = [name for name in names if name in self._left]
        if len(found) > 1:
            raise self.complain(f"{' and '.join(found)} mean the same; give one of them")
        value = self._left.pop(found[0]) if found else ""
        text = "" if value is None else str(value).strip()
        if required and not text:
            raise self.complain(f"{names[0]} is empty; it is required")
        return text

    def texts(self, name: str) -> dict[str, str] | None:
        value = self._left.pop(name, None)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.complain(f"{name} is {value!r}; write a map")
        return {str(key): str(item) for key, item in value.items()}

    def number(self, name: str) -> float | None:
        value = self._left.pop(name, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.complain(f"{name} is {value!r}; write a number")
        return float(value)

    def take(self, name: str) -> object:
        return self._left.pop(name, None)

    def finish(self) -> None:
        if self._left:
            raise self.complain(f"unknown field {sorted(self._left)[0]!r}; check its spelling")


def parse_offering(entry: object, number: int, dialect: Dialect) -> Offering:
    """One entry; `number` counts from 1 and is named in every complaint."""
    where = f"offering {number}"
    if not isinstance(entry, Mapping):
        raise OptionError(f"{where}: expected a map, found {entry!r}")
    fields = _Fields(entry, where)
    instance_type = fields.text("instance_type", *dialect.type_names, required=True)
    zone = fields.text("zone", *(n for n in dialect.zone_names if n != "zone"), required=True)
    kind = _capacity_type(fields, dialect)
    resources, allocatable = fields.texts("resources"), fields.texts("allocatable")
    for name, values in (("resources", resources), ("allocatable", allocatable)):
        if values is not None:
            check_quantities(values, f"{where}: {name}", complete=True)
    labels = fields.texts("labels") or {}
    for label in labels:
        if label in REFUSED_LABELS:
            raise fields.complain(f"label {label!r} repeats a field of the machine; leave it out")
    reserve = fields.texts("reserve")
    if reserve is not None:
        check_quantities(reserve, f"{where}: reserve", complete=False)
    image = fields.take("image") or ""
    offering = Offering(
        instance_type=instance_type,
        zone=zone,
        capacity_type=kind,
        count=_count(fields),
        resources=resources,
        allocatable=allocatable,
        labels=labels,
        reserve=reserve,
        price=_price(fields, kind),
        interruption=_probability(fields, kind),
        image={str(k): str(v) for k, v in image.items()}
        if isinstance(image, Mapping)
        else str(image),
        disk_gb=int(fields.number("disk_gb") or 0),
        reservation=fields.text("reservation"),
        placement_group=fields.text("placement_group"),
        user_data=fields.text("user_data"),
        taints=_taints(fields, "taints"),
        startup_taints=_taints(fields, "startup_taints"),
        extra={n: text for n in dialect.extra_fields if (text := fields.text(n))},
        pool=_pool(fields),
        tags=fields.texts("tags") or {},
    )
    fields.finish()
    return replace(offering, size=dialect.size_of(offering))


def _pool(fields: _Fields) -> str:
    pool = fields.text("pool")
    if pool and not POOL.fullmatch(pool):
        raise fields.complain(f"pool {pool!r} is part of slot ids; use a-z, 0-9 and -, at most 20")
    return pool


def _capacity_type(fields: _Fields, dialect: Dialect) -> CapacityType:
    word = fields.text("capacity_type") or "on_demand"
    known = {kind.key: kind for kind in dialect.capacity_types}
    if word not in known:
        raise fields.complain(
            f"capacity_type {word!r} is not offered here; choose from {', '.join(sorted(known))}"
        )
    return known[word]


def _count(fields: _Fields) -> int:
    count = fields.number("count")
    if count is None or count != int(count) or not 0 <= count <= MOST_SLOTS:
        raise fields.complain(f"count is {count}; give a whole number from 0 to {MOST_SLOTS}")
    return int(count)


def _price(fields: _Fields, kind: CapacityType) -> float | None:
    price = fields.number("price_usd_per_hour")
    if price is None:
        return None
    free = price == 0 and kind is CapacityType.BARE_METAL
    if not free and not 0 < price < float("inf"):
        raise fields.complain(
            f"price_usd_per_hour is {price:g}; it must be above 0, and is 0 for bare_metal only"
        )
    return price


def _probability(fields: _Fields, kind: CapacityType) -> float | None:
    value = fields.number("interruption_probability")
    if value is None:
        return None
    if not 0 <= value <= 1 or (kind is CapacityType.SPOT and value == 0):
        raise fields.complain(
            f"interruption_probability is {value:g}; give 0 to 1, and above 0 for spot"
        )
    return value


def _taints(fields: _Fields, name: str) -> tuple[str, ...]:
    value = fields.take(name)
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise fields.complain(f"{name} is {value!r}; write a list of key=value:Effect")
    for taint in value:
        if not TAINT.fullmatch(str(taint)):
            raise fields.complain(
                f"taint {str(taint)!r} does not parse; write key=value:NoSchedule"
            )
    return tuple(str(taint) for taint in value)


def refuse_clashes(offerings: Sequence[Offering]) -> None:
    """Two entries must not give one slot id."""
    seen: dict[tuple[object, ...], list[tuple[int, Offering]]] = {}
    for number, offering in enumerate(offerings, 1):
        for before, other in seen.setdefault(offering.key, []):
            if _overlap(other, offering):
                raise OptionError(
                    f"offering {number}: same type, zone and capacity type as offering {before}; "
                    "join the two, or give each a `pool` where they differ in more than the count"
                )
        seen[offering.key].append((number, offering))


def _overlap(one: Offering, other: Offering) -> bool:
    return one.first < other.first + other.count and other.first < one.first + one.count
