"""The simulated cloud as a process: a provider on a real port, its levers on standard input."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import uvloop

from bigfleet.observe.logs import configure_logs
from bigfleet_lab.demo.orders import Order, number, obey_until_told, text
from bigfleet_lab.fake.showroom import Place, Showroom


async def serve(place: Place) -> None:
    """Serve until told to stop."""
    room = await Showroom.open(place)
    try:
        await obey_until_told(partial(obey, room))
    finally:
        await room.close()


async def obey(room: Showroom, order: Order) -> None:
    """One order."""
    match text(order, "do"):
        case "lose_zone":
            await room.lose_zone(text(order, "zone"))
        case "restore":
            await room.restore(text(order, "zone"))
        case "reclaim_spot":
            await room.reclaim_spot(number(order, "share"))
        case "sell_out":
            room.sell_out(True)
        case "restock":
            room.sell_out(False)
        case other:
            raise ValueError(f"{other!r} is not an order for the cloud")


def main() -> None:
    """Run the process."""
    words = argparse.ArgumentParser(prog="bigfleet-demo-cloud", allow_abbrev=False)
    for flag in ("--addr", "--metrics-addr", "--state"):
        words.add_argument(flag, required=True)
    words.add_argument("--seed", type=int, default=1)
    given = words.parse_args()
    configure_logs()
    try:
        place = Place(given.addr, given.metrics_addr, Path(given.state), given.seed)
        uvloop.run(serve(place))
    except (OSError, ValueError, RuntimeError) as error:
        print(f"simulated cloud: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
