"""A provider that is not built on our kit, as an executable: `python -m reference.foreign [fault]`.

It answers --help as programs do that use Go's flag package, refuses flags it does not know
(--use-fake-backend, --reconcile-interval), takes negative numbers of a token for bad arguments,
and lists no slot that fails. Its fault subject lists slots whose Create is refused, but knows
neither stock-outs nor lost hosts: what the canonical catalogue needs, and not more.
"""

import sys

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from reference.config import Config, OptionError, parse
from reference.provider import Call, Provider
from reference.reads import Code, RefusedError
from reference.server import Server, run_forever
from reference.store import StoreError

HELP = """Usage of foreign:
  -addr string
    \taddress to listen on (default "127.0.0.1:9001")
  -provider string
  -seed-count int
  -state string
  -transition-timeout duration
  -slow-ms int
  -tls-cert string
  -version
"""
KNOWN = ("addr", "provider", "seed-count", "state", "transition-timeout", "slow-ms")


class Foreign(Provider):
    """Its slots never fail by themselves."""

    def load(self) -> None:
        super().load()
        for id in [id for id, slot in self.inventory.slots.items() if self.hidden(slot.record)]:
            del self.inventory.slots[id]

    def hidden(self, record: pb.Machine) -> bool:
        """Whether this provider does not have such a slot."""
        return "conformance.fault/create" in record.labels

    def validate(self, call: Call) -> pb.TransitionAck | None:
        if min(call.request.shard_epoch, call.request.sequence_number) < 0:
            raise RefusedError(Code.INVALID_ARGUMENT, "a number is negative")
        return super().validate(call)


class ForeignFault(Foreign):
    """Its fault subject: refused launches, and no stock-outs."""

    def hidden(self, record: pb.Machine) -> bool:
        return record.labels.get("conformance.fault/create") == "stockout"


def main() -> int:
    """Serve until told to end."""
    arguments = sys.argv[1:]
    fault = arguments[:1] == ["fault"]
    arguments = arguments[1:] if fault else arguments
    for argument in arguments:
        name = argument.lstrip("-").partition("=")[0]
        if name in ("help", "version"):
            sys.stdout.write(HELP if name == "help" else "foreign 2.1.0\n")
            return 0
        if name not in KNOWN:
            sys.stderr.write(f"flag provided but not defined: -{name}\n")
            return 2
    try:
        config: Config = parse(arguments)
        run_forever(lambda: Server((ForeignFault if fault else Foreign)(config)))
    except (OptionError, StoreError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
