"""The provider of one shard as a process: the fake with a profile's machines and latencies.

Machines of the tiers seed and idle exist when it says so in its log, at their first start; a later
start finds them in the state file. Orders come on standard input: `latency` makes transitions take
the profile's time from now on, `sell_out` and "restock" are a stock-out of everything.

python -m bigfleet_scaletest.provider.process --shard N --addr A --metrics-addr A --state FILE
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

import uvloop

from bigfleet.observe.logs import configure_logs
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_lab.demo.orders import Order, obey_until_told, text
from bigfleet_lab.fake.handle import FakeProvider
from bigfleet_lab.fake.spec import FakeOptions, spec_for
from bigfleet_lab.fake.substrate import FakeSubstrate
from bigfleet_lab.profiles.model import LatencyModel
from bigfleet_providerkit import start
from bigfleet_providerkit.kit import Kit
from bigfleet_providerkit.machines.state import State
from bigfleet_scaletest.provider.offerings import SEED_TIERS, offerings
from bigfleet_scaletest.run_options import PlannedRun, add_flags, options_of, plan_run

USUAL: Final[Mapping[str, LatencyModel]] = {
    "create": LatencyModel(45, 180),
    "configure": LatencyModel(8, 40),
    "drain": LatencyModel(2, 10),
    "delete": LatencyModel(5, 30),
}
"""Of on-demand machines; only such are made during a run."""
_Z99: Final = 2.3263
_FILL_AT_ONCE: Final = 64
LABEL: Final = "scaletest"


class LatencySubstrate(FakeSubstrate):
    """The cloud in memory, whose transitions take log-normal times once that is switched on."""

    models: Mapping[str, LatencyModel]
    latency_on = False
    draws: Random

    async def _delay(self, kind: str) -> None:
        model = self.models.get(kind)
        if self.latency_on and model is not None and model.p50_seconds > 0:
            sigma = math.log(max(1.0, model.p99_seconds / model.p50_seconds)) / _Z99
            await asyncio.sleep(self.draws.lognormvariate(math.log(model.p50_seconds), sigma))


class ScaleProvider:
    """A running provider and its orders."""

    def __init__(self, fake: FakeProvider) -> None:
        assert isinstance(fake.substrate, LatencySubstrate)
        self.fake, self._substrate = fake, fake.substrate

    @classmethod
    async def open(cls, run: PlannedRun, shard: int, options: FakeOptions) -> ScaleProvider:
        """Started, with everything that exists from the start."""
        usual = dict(USUAL)
        for method, kinds in run.profile.provider.latency.items():
            if method in usual:
                usual[method] = kinds.get("on_demand") or kinds.get("default") or usual[method]

        async def open_substrate(given: FakeOptions, kit: Kit) -> LatencySubstrate:
            made = LatencySubstrate(kit, slow=0.0, fail_rate={}, losses={}, seed=run.options.seed)
            made.models, made.draws = usual, Random(f"latency-{run.options.seed}-{shard}")
            return made

        spec = replace(spec_for(options), open=open_substrate)
        provider = cls(FakeProvider(await start(spec, options)))
        await provider.fill()
        return provider

    async def fill(self) -> None:
        """Machines of the seed tiers exist."""
        running = self.fake.running
        # After a restart everything is there, and takes its time at once.
        self._substrate.latency_on = bool(self._substrate.hosts)
        if self._substrate.hosts:
            return
        slots = [
            record.id
            for record in running.backend.ledger.inventory
            if record.state is State.SPECULATIVE
            and any(f"{tier}-" in record.id for tier in SEED_TIERS)
        ]
        for at in range(0, len(slots), _FILL_AT_ONCE):
            await asyncio.gather(
                *(
                    running.service.create(pb.CreateRequest(machine_id=each))
                    for each in slots[at : at + _FILL_AT_ONCE]
                )
            )
        inventory = running.backend.ledger.inventory
        while any(record.state is State.CREATING for record in inventory):  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def obey(self, order: Order) -> None:
        """One order."""
        match text(order, "do"):
            case "latency":
                self._substrate.latency_on = True
            case other:
                raise ValueError(f"{other!r} is not an order for the provider: use latency")


async def _serve(run: PlannedRun, shard: int, options: FakeOptions) -> None:
    provider = await ScaleProvider.open(run, shard, options)
    try:
        await obey_until_told(provider.obey)
    finally:
        await provider.fake.stop()


def main() -> None:
    """Run the process."""
    parser = argparse.ArgumentParser(prog="bigfleet-scaletest-provider", allow_abbrev=False)
    add_flags(parser)
    parser.add_argument("--shard", type=int, required=True)
    for flag in ("--addr", "--metrics-addr"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--state", type=Path, required=True)
    given = parser.parse_args()
    configure_logs()
    run = plan_run(options_of(given))
    listed = given.state.with_suffix(".offerings.json")
    listed.write_text(json.dumps(offerings(run, given.shard)), encoding="utf-8")
    options = FakeOptions.model_validate(
        {
            "addr": given.addr,
            "metrics_addr": given.metrics_addr,
            "provider": f"{LABEL}-{given.shard}",
            "state": str(given.state),
            "offerings": str(listed),
            "fake_seed": run.options.seed,
        }
    )
    uvloop.run(_serve(run, given.shard, options))


if __name__ == "__main__":
    main()
