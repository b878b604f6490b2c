"""A provider for tests: the real kit on a cloud in memory. Never use it for real machines.

It is asynchronous, fenced and, with a state file, durable, because everything but the cloud is what
providers for real clouds run on. Prices, delays, stock-outs, failures and losses come on command:

    fake = await FakeProvider.start(seed_count=12, delays={"create": "2s"})
    client = fake.client(FencingStamps("shard-a", 1))
    fake.stock_out("fake-standard-4", "fake-zone-a")
    await fake.lose(machine_id)

    handle     FakeProvider: started inside a process, with or without a port, on any clock
    spec       what it declares; options that only it has
    substrate  the cloud in memory, and hosts that are lost by chance
    local      calls without a socket
    main       the executable bigfleet-provider-fake

Needs the extra `fake` of the distribution: pip install 'bigfleet[fake]'.
"""

from bigfleet_lab.fake.handle import FakeProvider
from bigfleet_lab.fake.local import LocalTransport
from bigfleet_lab.fake.spec import FakeOptions, spec_for
from bigfleet_lab.fake.substrate import FakeSubstrate

__all__ = ["FakeOptions", "FakeProvider", "FakeSubstrate", "LocalTransport", "spec_for"]
