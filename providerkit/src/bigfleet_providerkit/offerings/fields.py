"""The fields of an offering as people read about them; `parse` reads them from a file."""

from bigfleet_providerkit.options.model import KitOptions, described
from bigfleet_providerkit.spec import ProviderSpec

MEANINGS = {
    "instance_type": "the substrate's name of the type; required",
    "zone": "the substrate's name of the place; required",
    "capacity_type": "how it is paid for",
    "count": "number of slots; 0 retires them",
    "pool": "sets apart offerings of one type that differ in image or taints; part of slot ids",
    "price_usd_per_hour": "wins over every other price",
    "interruption_probability": "hourly, wins over the forecast",
    "resources": "what a slot promises; by default cpu 1 and memory 2Gi",
    "allocatable": "what Pods can use; by default the shape less the reserve",
    "reserve": "what system daemons take of the shape, over `--reserve`",
    "labels": "labels of the node",
    "taints": "list of `key=value:Effect`; only Pods that tolerate them get the machine",
    "startup_taints": "registered on the node, taken away by something in the cluster",
    "image": "over `--image`; may be a map by architecture",
    "disk_gb": "size of the root disk",
    "reservation": "reserved capacity to use",
    "placement_group": "group of hosts to place it in",
    "user_data": "more for the first boot, over `--base-user-data`",
    "tags": "tags for the cloud's own bills, over `--tags`",
}
"""The kit's fields, in the order in which they are shown."""
NAMES_OF_THE_PROVIDER = {"instance_type": "type_names", "zone": "zone_names"}


def offering_table(spec: ProviderSpec[KitOptions]) -> str:
    """The fields that a provider takes, as a Markdown table."""
    rows = ["| field | meaning |", "| --- | --- |"]
    for name, meaning in MEANINGS.items():
        others = getattr(spec, NAMES_OF_THE_PROVIDER.get(name, ""), ())
        names = ", ".join(f"`{n}`" for n in dict.fromkeys((name, *others)))
        if name == "capacity_type":
            kinds = sorted(kind.key for kind in spec.capacity_types)
            meaning += f": {', '.join(kinds)}; by default on_demand"
        rows.append(f"| {names} | {meaning} |")
    helps = {name: opt.help for name, opt in described(spec.options)}
    for name in spec.extra_fields:
        option = f"--{name.replace('_', '-')}"
        meaning = f"over `{option}`: {helps[name]}" if name in helps else "its own, see below"
        rows.append(f"| `{name}` | {meaning} |")
    return "\n".join(rows) + "\n"
