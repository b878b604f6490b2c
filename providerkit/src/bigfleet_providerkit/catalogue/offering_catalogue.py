"""Offerings, prices, shapes and forecasts, looked at together: what each slot is and costs.

The catalogue gives every offering its `Shape`, and every slot id its offering. It checks each shape
before it enters the inventory; an offering that fails stops the start with a sentence, and one that
fails later keeps its last good shape.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from bigfleet_providerkit.capacity.node_reports import (
    Amounts,
    NodeReports,
    corrected,
    differences,
)
from bigfleet_providerkit.capacity.table import (
    CapacityTable,
    allocatable_of,
    check_quantities,
    resources_of,
    with_pods,
)
from bigfleet_providerkit.catalogue.sources import SourceData
from bigfleet_providerkit.errors import OptionError
from bigfleet_providerkit.interruption.book import InterruptionBook
from bigfleet_providerkit.machines.record import Record, Shape
from bigfleet_providerkit.machines.state import CapacityType
from bigfleet_providerkit.offerings.offering import Offering
from bigfleet_providerkit.prices.book import PriceBook, Quote, moved
from bigfleet_providerkit.substrate import Capacity, Host


class OfferingCatalogue:
    """What the slots of one provider are."""

    def __init__(
        self,
        label: str,
        region: str,
        offerings: Sequence[Offering],
        prices: PriceBook,
        capacities: CapacityTable,
        interruption: InterruptionBook,
        *,
        reserve: Callable[[Capacity], Mapping[str, str]],
        reserve_given: bool = False,
        image: Mapping[str, str] | str = "",
        user_data: str = "",
        region_of: Callable[[str], str] | None = None,
        tags: Mapping[str, str] | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        self.label = label
        self.region = region
        self._region_of = region_of or (lambda zone: region)
        self._tags = dict(tags or {})
        self._extra = dict(extra or {})
        self.prices = prices
        self.capacities = capacities
        self.interruption = interruption
        self._reserve = reserve
        self._reserve_given = reserve_given
        self.reports = NodeReports()
        self._image = image
        self._user_data = user_data
        self.offerings: Sequence[Offering] = ()
        self._by_slot: dict[str, Offering] = {}
        self._made: dict[tuple[object, ...], Shape] = {}
        self.take(offerings)

    def take(self, offerings: Sequence[Offering]) -> None:
        """Use these offerings from now on."""
        self.offerings = tuple(offerings)
        self.forget()
        self._by_slot = {
            slot: offering for offering in offerings for slot in offering.slot_ids(self.label)
        }

    def forget(self) -> None:
        """Prices or shapes changed: make the offerings' shapes again when they are asked for."""
        self._made.clear()

    def offering_of(self, machine: str) -> Offering | None:
        """The offering a machine belongs to; None for a machine outside the offerings."""
        return self._by_slot.get(machine)

    def slot_ids(self) -> Iterator[str]:
        """All slots of the offerings."""
        return iter(self._by_slot)

    def image(self, offering: Offering | None, arch: str) -> str:
        """The image of a new host, by architecture where a map was given."""
        chosen = (offering.image if offering else "") or self._image
        return chosen if isinstance(chosen, str) else chosen.get(arch, "")

    def tags(self, offering: Offering | None) -> dict[str, str]:
        """The tags of a person: those of `--tags`, and the offering's own over them."""
        return {**self._tags, **(offering.tags if offering else {})}

    def extra(self, offering: Offering | None) -> dict[str, str]:
        """The provider's own fields of an offering, and the options that stand in for them."""
        return {**self._extra, **(offering.extra if offering else {})}

    def learn(self, data: SourceData) -> bool:
        """Take what a source said; False when it gave prices and none of them can be used."""
        self.capacities.overlay(data.capacities)
        useful = self.prices.refresh(data.prices)
        if data.forecasts is not None:
            self.interruption.take(data.forecasts)
        self.forget()
        return useful or bool(data.capacities) or data.forecasts is not None

    def quote(self, offering: Offering) -> Quote:
        """What a slot of an offering costs, and where the price comes from."""
        return self.prices.quote(
            offering.instance_type, offering.zone, offering.capacity_type, offering.price,
            sized=offering.sized_type, region=self._region_of(offering.zone),
        )  # fmt: skip

    def provenance(self) -> dict[str, int]:
        """How many slots have a price from where."""
        counts: Counter[str] = Counter()
        for offering in self.offerings:
            counts[str(self.quote(offering))] += offering.count
        return dict(counts)

    def user_data(self, offering: Offering | None) -> str:
        """User data for the first boot."""
        return (offering.user_data if offering else "") or self._user_data

    def shapes(self) -> dict[str, Shape]:
        """The shape of every slot; raises for an offering that cannot be one."""
        result = {}
        for number, offering in enumerate(self.offerings, 1):
            shape = self.shape_for(offering, f"offering {number} ({offering.instance_type})")
            for slot in offering.slot_ids(self.label):
                result[slot] = shape
        return result

    def shape_for(self, offering: Offering, where: str) -> Shape:
        """The shape of an offering's slots, checked."""
        known = self.capacities.get(offering.instance_type, offering.sized_type)
        if known is None and offering.allocatable is None:
            raise OptionError(
                f"{where}: the shape of {offering.sized_type} is not known; check the type, or "
                "give allocatable"
            )
        images = offering.image or self._image
        arch = known.arch if known else "amd64"
        if images and not isinstance(images, str) and arch not in images:
            raise OptionError(f"{where}: no image for {arch}; add {arch}=... to the images")
        labels = {
            "kubernetes.io/arch": arch,
            "kubernetes.io/os": "linux",
            "topology.kubernetes.io/region": self._region_of(offering.zone),
        }
        if known is not None and known.accelerator:
            labels["bigfleet.io/accelerator"] = known.accelerator
        labels.update(offering.labels)
        resources = offering.resources or resources_of(known)
        allocatable = self._promised(offering, known, where)
        if offering.allocatable is None:
            allocatable = corrected(
                allocatable, self.reports.least(offering.type_word),
                upwards=offering.reserve is None and not self._reserve_given,
            )  # fmt: skip
        quote = self.quote(offering)
        shape = Shape(
            instance_type=offering.instance_type,
            zone=offering.zone,
            capacity_type=offering.capacity_type,
            price=quote.usd,
            probability=self.interruption.forecast(
                offering.instance_type, offering.capacity_type, offering.interruption
            ),
            resources=resources,
            allocatable=allocatable,
            labels=labels,
            taints=offering.taints,
        )
        check_shape(shape, where)
        return shape.packed()

    def _promised(self, offering: Offering, known: Capacity | None, where: str) -> dict[str, str]:
        """What an offering promises to Pods before a Node of its type has reported."""
        allocatable: Mapping[str, str] = offering.allocatable or {}
        if offering.allocatable is None and known is not None:
            reserve = self._reserve(known) if offering.reserve is None else offering.reserve
            allocatable = allocatable_of(known, reserve, where)
        return with_pods(allocatable, offering.resources or resources_of(known))

    def reported(self, machine: str, report: Amounts) -> str:
        """Take what a machine's Node reports; its type when that corrects the promise, or empty."""
        offering = self.offering_of(machine)
        if offering is None or not self.reports.take(offering.type_word, machine, report):
            return ""
        self.forget()
        return offering.type_word

    def load_reports(self, rows: Mapping[str, Mapping[str, Mapping[str, str]]]) -> None:
        """Take back what Nodes reported to an earlier process, by the word of their type."""
        for type_word, row in rows.items():
            self.reports.load(type_word, row)
        self.forget()

    def reserve_differences(self) -> dict[str, float]:
        """Per resource, the largest share by which an offering promises more than Nodes report."""
        largest: dict[str, float] = {}
        for offering in self.offerings:
            least = self.reports.least(offering.type_word)
            if not least:
                continue
            known = self.capacities.get(offering.instance_type, offering.sized_type)
            promised = self._promised(offering, known, offering.type_word)
            for name, share in differences(promised, least).items():
                largest[name] = max(share, largest.get(name, share))
        return largest

    def refreshed(self, record: Record) -> Shape:
        """The shape of a machine as the catalogue sees it now; its own where that is not known."""
        offering = self.offering_of(record.id)
        if offering is None:
            return record.shape
        try:
            key = (*offering.key, offering.first)
            shape = self._made.get(key)
            if shape is None:
                shape = self._made[key] = self.shape_for(offering, record.id)
            return settled(record.shape, shape, has_host=bool(record.host))
        except OptionError:
            return record.shape

    def foreign_shape(self, host: Host) -> Shape | None:
        """A shape for a host outside the offerings, as far as one can be made up honestly."""
        offering = Offering(
            host.instance_type or "unknown", host.zone or self.region,
            host.capacity_type or CapacityType.ON_DEMAND, 1,
        )  # fmt: skip
        try:
            return self.shape_for(offering, f"host {host.ref}")
        except OptionError:
            return None


def settled(old: Shape, new: Shape, *, has_host: bool) -> Shape:
    """The old shape unless something real changed: a price that hardly moved does not count.

    Taints of a machine with a host stay: its node was registered with them.
    """
    if has_host and old.taints != new.taints:
        new = replace(new, taints=old.taints).packed()
    if old.encoded == new.encoded:
        return old
    same = (
        old.probability == new.probability
        and old.resources == new.resources
        and old.allocatable == new.allocatable
        and old.labels == new.labels
        and old.taints == new.taints
    )
    return old if same and not moved(old.price, new.price) else new


def check_shape(shape: Shape, where: str) -> None:
    """The rules of the wire for prices, probabilities and quantities."""
    if not 0 <= shape.price < float("inf"):
        raise OptionError(f"{where}: price {shape.price} is not a finite number of dollars")
    if shape.price == 0 and shape.capacity_type is not CapacityType.BARE_METAL:
        raise OptionError(f"{where}: a price of 0 is for owned hardware only")
    if not 0 <= shape.probability <= 1:
        raise OptionError(f"{where}: interruption probability {shape.probability} is not in [0,1]")
    if shape.capacity_type is CapacityType.SPOT and shape.probability == 0:
        raise OptionError(f"{where}: spot needs an interruption probability above 0")
    check_quantities(shape.resources, f"{where}: resources", complete=True)
    if shape.allocatable:
        check_quantities(shape.allocatable, f"{where}: allocatable", complete=True)
