"""Between records and hosts: the order for a new host, and the host behind a record."""

import hashlib
from collections.abc import Iterator
from itertools import islice

from bigfleet_providerkit.backend.state.ledger import Ledger, Work
from bigfleet_providerkit.catalogue.offering_catalogue import OfferingCatalogue
from bigfleet_providerkit.codec.tags import TagCodec, base32, host_name
from bigfleet_providerkit.hostexec.hostkey import HostKey, mint_host_key
from bigfleet_providerkit.hostexec.userdata import FirstBoot, first_boot
from bigfleet_providerkit.machines.record import Record
from bigfleet_providerkit.machines.state import Kind
from bigfleet_providerkit.offerings.offering import Offering
from bigfleet_providerkit.store.rows import NotesRow
from bigfleet_providerkit.substrate import Binding, Host, Launch


def host_of(record: Record, ledger: Ledger) -> Host:
    """The host of a machine, with what is remembered about it.

    Its node has the name under which it was launched, unless the substrate says otherwise.
    """
    notes = ledger.notes.get(record.id)
    if notes is None or notes.ref != record.host:
        notes = NotesRow(record.host)
    return Host(
        ref=record.host,
        machine_id=record.id,
        operation_id=record.create_op,
        instance_type=record.shape.instance_type,
        zone=record.shape.zone,
        capacity_type=record.capacity_type,
        cluster=record.cluster or None,
        address=notes.address,
        created=notes.created,
        pin=notes.pin,
        node_name=notes.node_name or (record.create_op and host_name(record.create_op)),
        notes=notes.notes,
        provider_id=notes.provider_id,
    )


def notes_of(host: Host, now: float) -> NotesRow:
    """What to remember about a host."""
    return NotesRow(
        ref=host.ref,
        address=host.address,
        pin=host.pin,
        node_name=host.node_name,
        created=host.created or now,
        operation=host.operation_id,
        zone=host.zone,
        instance_type=host.instance_type,
        notes=dict(host.notes),
        provider_id=host.provider_id,
    )


def binding_of(
    record: Record, cluster: str | None, pin: str, catalogue: OfferingCatalogue
) -> Binding:
    """The tag set of a machine's host."""
    tags = catalogue.tags(catalogue.offering_of(record.id))
    return Binding(record.id, record.create_op, record.capacity_type, cluster, pin, tags)


def order_for(
    record: Record,
    work: Work,
    catalogue: OfferingCatalogue,
    codec: TagCodec,
    *,
    hook: str,
    longest_name: int,
    form: FirstBoot = "cloud-init",
) -> Launch:
    """The order for a machine's host. It brings a host key where hosts are reached by SSH."""
    offering = catalogue.offering_of(record.id)
    arch = record.shape.labels.get("kubernetes.io/arch", "amd64")
    key = mint_host_key(work.seed) if work.seed else HostKey()
    user_data = first_boot(catalogue.user_data(offering), hook, key, form)
    image = catalogue.image(offering, arch)
    boot = first_boot(catalogue.user_data(offering), hook, HostKey(), form)
    binding = Binding(
        record.id, work.operation, record.capacity_type, None, key.pin, catalogue.tags(offering),
        launch_hash(image, boot, offering),
    )  # fmt: skip
    return Launch(
        machine_id=record.id,
        operation_id=work.operation,
        instance_type=record.shape.instance_type,
        zone=record.shape.zone,
        capacity_type=record.capacity_type,
        name=host_name(work.operation, longest_name),
        tags=codec.tags(binding),
        deadline=work.deadline,
        image=image,
        arch=arch,
        disk_gb=offering.disk_gb if offering else 0,
        reservation=offering.reservation if offering else "",
        placement_group=offering.placement_group if offering else "",
        extra=catalogue.extra(offering),
        user_data=user_data,
        host_key=key.private,
        pin=key.pin,
    )


def example_orders(
    catalogue: OfferingCatalogue, codec: TagCodec, hook: str, longest_name: int, form: FirstBoot
) -> Iterator[Launch]:
    """An order for the first slot of each offering, as its Create would give it."""
    for offering in catalogue.offerings:
        for machine in islice(offering.slot_ids(catalogue.label), 1):
            record = Record(machine, catalogue.label, catalogue.shape_for(offering, machine))
            work = Work(Kind.CREATE, "dry-run", started=0.0, deadline=0.0)
            yield order_for(
                record, work, catalogue, codec, hook=hook, longest_name=longest_name, form=form
            )


def launch_hash(image: str, user_data: str, offering: Offering | None) -> str:
    """What a host is made of, short enough for any tag: an outdated host has another one."""
    parts = [image, user_data]
    if offering is not None:
        made_of = (
            offering.instance_type, offering.size, offering.disk_gb, offering.reservation,
            offering.placement_group, sorted(offering.extra.items()),
        )  # fmt: skip
        parts.append(repr(made_of))
    return base32(hashlib.sha256("\0".join(parts).encode()).digest())[:16]
