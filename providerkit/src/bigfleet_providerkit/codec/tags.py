"""The tags that mark a host as ours, and how values fit into a cloud's limits.

A value is written as it is where length and characters allow, else as lower-case base32 without
padding behind a `b-`, else, too long even for that, as `h` and the first 40 characters of the
base32 of its SHA-256: such an id is found again by hashing the slots that are known. Whether
everything fits is checked at start, for the longest id, not at the first Create.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bigfleet_providerkit.errors import OptionError
from bigfleet_providerkit.machines.state import CapacityType
from bigfleet_providerkit.substrate import Binding, Host

MANAGED, PROVIDER, MACHINE = "managed", "provider", "machine-id"
OPERATION, CAPACITY, CLUSTER, HOST_KEY = "operation", "capacity", "cluster", "host-key-fp"
LAUNCH, VERSION = "launch", "tags"
TAGS_VERSION = "1"
HASHED_BYTES = 25
_BASE32 = "b-"
_HASH = re.compile(r"h[a-z2-7]{40}")


def base32(data: bytes) -> str:
    """Lower case, without padding."""
    return base64.b32encode(data).decode().rstrip("=").lower()


def hashed(value: str) -> str:
    """The short form of a value that does not fit."""
    return "h" + base32(hashlib.sha256(value.encode()).digest()[:HASHED_BYTES])


@dataclass
class TagCodec:
    """Writes and reads tags for one cloud's limits."""

    label: str
    prefix: str = "bigfleet"
    separator: str = ":"
    longest_key: int = 128
    longest_value: int = 256
    alphabet: str = ""
    _known: dict[str, str] = field(default_factory=dict)

    def key(self, name: str) -> str:
        """`bigfleet:machine-id` with the cloud's separator."""
        return f"{self.prefix}{self.separator}{name}"

    def encode(self, value: str) -> str:
        """A value as this cloud can hold it."""
        if self._fits(value):
            return value
        if self._is_hashed(value):
            return hashed(value)
        return _BASE32 + base32(value.encode())

    def decode(self, text: str) -> str | None:
        """The value behind a tag; None when it was hashed and is not a known value."""
        if text in self._known:
            return self._known[text]
        if text.startswith(_BASE32):
            body = text[len(_BASE32) :].upper()
            try:
                return base64.b32decode(body + "=" * (-len(body) % 8)).decode()
            except ValueError:
                return text
        if _HASH.fullmatch(text):
            return None
        return text

    def know(self, values: Iterable[str]) -> None:
        """Remember values whose tags are hashes, so that they are read back."""
        for value in values:
            if self._is_hashed(value) and not self._fits(value):
                self._known[hashed(value)] = value

    def _fits(self, value: str) -> bool:
        """Whether a value is written as it is."""
        if len(value) > self.longest_value or not value.isprintable():
            return False
        if self.alphabet and re.fullmatch(self.alphabet, value) is None:
            return False
        return not value.startswith(_BASE32) and _HASH.fullmatch(value) is None

    def _is_hashed(self, value: str) -> bool:
        """Whether a value that does not fit is too long even for base32."""
        return len(_BASE32) + -(-len(value.encode()) * 8 // 5) > self.longest_value

    def tags(self, binding: Binding) -> dict[str, str]:
        """The complete tag set of a host."""
        tags = {
            **self.mark(),
            self.key(MACHINE): self.encode(binding.machine_id),
            self.key(OPERATION): self.encode(binding.operation_id),
            self.key(CAPACITY): self.encode(binding.capacity_type.key),
        }
        if binding.cluster is not None:
            tags[self.key(CLUSTER)] = self.encode(binding.cluster)
        if binding.pin:
            tags[self.key(HOST_KEY)] = self.encode(binding.pin)
        if binding.launch:
            tags[self.key(LAUNCH)] = binding.launch
        return {**binding.tags, **tags, self.key(VERSION): TAGS_VERSION}

    def merged(self, present: Mapping[str, str], binding: Binding) -> dict[str, str]:
        """The complete tag set with the tags that others put on the host.

        What the host was made of stays as it was written at its launch.
        """
        own = self.key("")
        foreign = {key: value for key, value in present.items() if not key.startswith(own)}
        launched = {key: present[key] for key in (self.key(LAUNCH),) if key in present}
        return {**foreign, **launched, **self.tags(binding)}

    def ours(self, tags: Mapping[str, str]) -> bool:
        """Whether an object carries this provider's label."""
        return self.mark().items() <= tags.items()

    def mark(self) -> dict[str, str]:
        """The tags that every object of this provider has, and no other object."""
        return {self.key(MANAGED): "true", self.key(PROVIDER): self.encode(self.label)}

    def read(self, tags: Mapping[str, str], name: str) -> str | None:
        """One value of a tag set; None when absent or unreadable."""
        text = tags.get(self.key(name))
        return None if text is None else self.decode(text)

    def capacity_type(self, tags: Mapping[str, str]) -> CapacityType | None:
        """How the host is paid for, as its tags say."""
        word = (self.read(tags, CAPACITY) or "").upper()
        return CapacityType[word] if word in CapacityType.__members__ else None

    def host(self, tags: Mapping[str, str], ref: str, **fields: Any) -> Host:
        """A host as its tags describe it; `fields` is what the cloud itself says about it."""
        return Host(
            ref=ref,
            machine_id=self.read(tags, MACHINE) or "",
            operation_id=self.read(tags, OPERATION) or "",
            capacity_type=self.capacity_type(tags),
            cluster=self.read(tags, CLUSTER),
            pin=self.read(tags, HOST_KEY) or "",
            **fields,
        )

    def check_given(self, tags: Mapping[str, str], where: str) -> None:
        """Refuse tags of a person that this cloud does not take or that would hide ours."""
        for key, value in tags.items():
            if key.startswith(self.prefix):
                raise OptionError(f"{where}: {key} is for BigFleet's own tags; choose another key")
            allowed = not self.alphabet or re.fullmatch(self.alphabet, value) is not None
            if not key or len(key) > self.longest_key or len(value) > self.longest_value:
                raise OptionError(
                    f"{where}: {key}={value}: keys have 1 to {self.longest_key} characters here, "
                    f"values at most {self.longest_value}"
                )
            if not allowed:
                raise OptionError(
                    f"{where}: {key}={value}: this cloud takes only {self.alphabet} as a value"
                )

    def check(self, longest_id: str) -> None:
        """Refuse limits into which not even a hash fits."""
        longest_key = max(len(self.key(name)) for name in (HOST_KEY, MACHINE, OPERATION))
        if longest_key > self.longest_key:
            raise OptionError(
                f"tag keys of {longest_key} characters do not fit the limit of {self.longest_key}"
            )
        for value in (longest_id, self.label):
            if len(self.encode(value)) > self.longest_value:
                raise OptionError(
                    f"{value!r} does not fit a tag of {self.longest_value} characters; "
                    "use a shorter --provider or instance type"
                )


def host_name(operation_id: str, longest: int = 63) -> str:
    """The name of the host that an operation makes: `bf-<operation id>`."""
    return f"bf-{operation_id}"[:longest]
