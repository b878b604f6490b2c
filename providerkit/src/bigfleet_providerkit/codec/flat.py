"""Our tags on clouds whose tags are names without values: `bfmid:<machine id>`.

`FlatTags` turns the tag set that `TagCodec` writes into names, and names back into such a set, so
that a substrate reads both kinds of cloud the same way. Values are encoded by the codec; give it
lower-case letters only (`Limits.tag_alphabet`) where a cloud takes `A` and `a` for one tag.
"""

from collections.abc import Iterable, Mapping

from bigfleet_providerkit.codec.tags import (
    CAPACITY,
    CLUSTER,
    HOST_KEY,
    LAUNCH,
    MACHINE,
    MANAGED,
    OPERATION,
    PROVIDER,
    VERSION,
    TagCodec,
)

MANAGED_NAME = "bigfleet-managed"
SHORT = {
    PROVIDER: "bfprov", MACHINE: "bfmid", OPERATION: "bfop", CLUSTER: "bfcluster",
    CAPACITY: "bfcap", HOST_KEY: "bfkey", LAUNCH: "bflaunch", VERSION: "bftags",
}  # fmt: skip


class FlatTags:
    """Writes and reads tags as names, with `separator` between what they say and its value."""

    def __init__(self, codec: TagCodec, separator: str = ":") -> None:
        self._codec = codec
        self._separator = separator
        self._short = {codec.key(name): short for name, short in SHORT.items()}
        self._long = {short: key for key, short in self._short.items()}

    def name(self, what: str, value: str) -> str:
        """One tag, for example `name(OPERATION, "x-7")`."""
        return f"{SHORT[what]}{self._separator}{self._codec.encode(value)}"

    def names(self, tags: Mapping[str, str]) -> list[str]:
        """A tag set of the codec as names, those of a person included."""
        managed = self._codec.key(MANAGED)
        return sorted(
            MANAGED_NAME
            if key == managed
            else f"{self._short.get(key, key)}{self._separator}{value}"
            for key, value in tags.items()
        )

    def read(self, names: Iterable[str]) -> dict[str, str]:
        """The tag set behind names; a name without a value has an empty one."""
        tags = {}
        for name in names:
            if name == MANAGED_NAME:
                tags[self._codec.key(MANAGED)] = "true"
            else:
                head, _, value = name.partition(self._separator)
                tags[self._long.get(head, head)] = value
        return tags
