"""Forecasts of interruption: hourly probabilities by instance type or by pattern of types.

Tables may state a month; they are converted as hourly = 1 - (1 - p)^(1/720). A file replaces or
extends the shipped table and what the cloud says. What is observed about one machine stands in its
record and wins there.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase

import yaml

from bigfleet_providerkit.errors import OptionError
from bigfleet_providerkit.machines.state import CapacityType
from bigfleet_providerkit.spec import InterruptionTable

HOURS_A_MONTH = 720


def hourly(probability: float, horizon: str) -> float:
    """A forecast for an hour or a month as one for an hour."""
    if horizon == "hour":
        return probability
    return float(1.0 - (1.0 - probability) ** (1.0 / HOURS_A_MONTH))


class InterruptionBook:
    """Forecasts by type."""

    def __init__(self, table: InterruptionTable) -> None:
        self._hourly = {t: hourly(p, table.horizon) for t, p in table.values.items()}
        self._otherwise = hourly(table.otherwise, table.horizon)
        self._given: dict[str, float] = {}

    def take(self, live: InterruptionTable) -> None:
        """Take what the cloud says; what is not a probability is left out."""
        usable = {t: p for t, p in live.values.items() if 0 < p <= 1}
        self._hourly.update({t: hourly(p, live.horizon) for t, p in usable.items()})

    def extend(self, text: str, where: str) -> None:
        """Take priors from a file: {horizon: hour|month, values: {type: probability}}."""
        try:
            data = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise OptionError(f"{where} does not parse: {error}") from error
        if not isinstance(data, Mapping) or not isinstance(data.get("values"), Mapping):
            raise OptionError(f"{where}: write `horizon: hour` or `month`, and a map `values`")
        horizon = data.get("horizon", "hour")
        if horizon not in ("hour", "month"):
            raise OptionError(f"{where}: horizon {horizon!r} is neither hour nor month")
        for name, value in data["values"].items():
            if not isinstance(value, int | float) or not 0 <= value <= 1:
                raise OptionError(f"{where}: {name}: {value!r} is not a probability from 0 to 1")
            self._given[str(name)] = hourly(float(value), horizon)

    def forecast(
        self, instance_type: str, kind: CapacityType, override: float | None = None
    ) -> float:
        """The hourly probability of a slot; spot is never 0."""
        if override is not None:
            return override
        if kind is not CapacityType.SPOT:
            return 0.0
        known = _match(self._given, instance_type) or _match(self._hourly, instance_type)
        return known or self._otherwise


def _match(table: Mapping[str, float], instance_type: str) -> float | None:
    """The value of a type: its own, else that of the first pattern that fits (`n2-*`)."""
    own = table.get(instance_type)
    if own is not None:
        return own
    return next((p for name, p in table.items() if fnmatchcase(instance_type, name)), None)
