"""Prices that a person gives for all offerings at once: `--prices FILE`, JSON or YAML.

    prices:
      m6i.large: 0.081                                  # on demand, everywhere
      c7g.xlarge: {on_demand: 0.12, spot: 0.05}         # by capacity type
      r6i.large: {eu-west-1a: {on_demand: 0.13}}        # in one zone or region

Dollars an hour. They win over live and seed prices, and an offering's own price wins over them.
"""

from collections.abc import Iterator, Mapping

import yaml

from bigfleet_providerkit.errors import OptionError
from bigfleet_providerkit.machines.state import CapacityType
from bigfleet_providerkit.substrate import PriceKey

KINDS = {kind.key: kind for kind in CapacityType}


def read_prices(text: str, where: str) -> dict[PriceKey, float]:
    """The prices of a file; every mistake is named with its type."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise OptionError(f"{where} does not parse: {' '.join(str(error).split())}") from error
    rows = data.get("prices") if isinstance(data, Mapping) else None
    if not isinstance(rows, Mapping) or not rows:
        raise OptionError(f"{where}: write a map `prices` from instance types to dollars an hour")
    result: dict[PriceKey, float] = {}
    for name, value in rows.items():
        for place, kind, price in _rows_of(value, f"{where}: {name}"):
            result[PriceKey(str(name), place, kind)] = price
    return result


def _rows_of(value: object, where: str) -> Iterator[tuple[str, CapacityType, float]]:
    if not isinstance(value, Mapping):
        yield "", CapacityType.ON_DEMAND, _price(value, where)
        return
    for key, inner in value.items():
        if str(key) in KINDS:
            yield "", KINDS[str(key)], _price(inner, f"{where}: {key}")
        elif isinstance(inner, Mapping):
            for kind, price in inner.items():
                if str(kind) not in KINDS:
                    raise OptionError(f"{where}: {kind!r} is not a capacity type")
                yield str(key), KINDS[str(kind)], _price(price, f"{where}: {key}: {kind}")
        else:
            yield str(key), CapacityType.ON_DEMAND, _price(inner, f"{where}: {key}")


def _price(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        raise OptionError(f"{where}: {value!r} is not a price above 0 in dollars an hour")
    return float(value)
