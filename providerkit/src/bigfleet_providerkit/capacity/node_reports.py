"""What real Nodes report as allocatable, by type, and how it corrects what the reserve promises.

A shipped reserve is an estimate: kernel, kubelet and agents decide what Pods really get.
The smallest of the last reports of a type wins, so that no machine of it is promised larger than
one that was seen. Devices are left out: their plugins register them after the node is Ready.
"""

from collections.abc import Mapping
from fractions import Fraction

from bigfleet_providerkit.capacity.quantity import parse_quantity, write_cpu, write_memory

CORRECTED = ("cpu", "memory", "pods")
KEPT = 8
STEP: Mapping[str, Fraction] = {
    "cpu": Fraction(1, 1000), "memory": Fraction(16 * 1024**2), "pods": Fraction(1),
}  # fmt: skip
"""Reports are rounded down to these: equal machines differ by a few pages of memory."""

Amounts = Mapping[str, Fraction]


def read_report(allocatable: Mapping[str, object]) -> dict[str, Fraction]:
    """The amounts of a Node's allocatable that correct a promise; empty for one without cpu or
    memory."""
    amounts = {}
    for name in CORRECTED:
        try:
            amount = parse_quantity(str(allocatable.get(name, "")))
        except ValueError:
            continue
        steps = amount // STEP[name]
        if steps > 0:
            amounts[name] = steps * STEP[name]
    return amounts if {"cpu", "memory"} <= amounts.keys() else {}


class NodeReports:
    """The last reports of each type, by the machine that made them."""

    def __init__(self) -> None:
        self._by_type: dict[str, dict[str, Amounts]] = {}

    def take(self, type_word: str, machine: str, report: Amounts) -> bool:
        """Take one report; whether the smallest of its type changed."""
        before = self.least(type_word)
        reports = self._by_type.setdefault(type_word, {})
        reports.pop(machine, None)
        reports[machine] = dict(report)
        while len(reports) > KEPT:
            del reports[next(iter(reports))]
        return self.least(type_word) != before

    def least(self, type_word: str) -> Amounts:
        """The smallest reported amounts of a type; empty while none reported."""
        least: dict[str, Fraction] = {}
        for report in self._by_type.get(type_word, {}).values():
            for name, amount in report.items():
                least[name] = min(amount, least.get(name, amount))
        return least

    def written(self, type_word: str) -> dict[str, str]:
        """The smallest reported amounts as quantities."""
        return {name: _written(name, amount) for name, amount in self.least(type_word).items()}

    def row(self, type_word: str) -> dict[str, dict[str, str]]:
        """The reports of a type in the form that the store keeps."""
        reports = self._by_type.get(type_word, {})
        return {
            machine: {name: str(amount) for name, amount in report.items()}
            for machine, report in reports.items()
        }

    def load(self, type_word: str, row: Mapping[str, Mapping[str, str]]) -> None:
        """Take back what an earlier process kept."""
        for machine, report in row.items():
            amounts = {name: Fraction(text) for name, text in report.items() if name in CORRECTED}
            self.take(type_word, machine, amounts)


def corrected(promised: Mapping[str, str], least: Amounts, *, upwards: bool) -> dict[str, str]:
    """The promise as the reports correct it; upwards only where no person chose the reserve."""
    result = dict(promised)
    for name, reported in least.items():
        if name in promised and not upwards and parse_quantity(promised[name]) <= reported:
            continue
        result[name] = _written(name, reported)
    return result


def _written(name: str, amount: Fraction) -> str:
    if name == "cpu":
        return write_cpu(int(amount * 1000))
    return write_memory(int(amount)) if name == "memory" else str(int(amount))


def differences(promised: Mapping[str, str], least: Amounts) -> dict[str, float]:
    """By which share the reserve promises more than was reported; below 0 when less."""
    return {
        name: float((own - reported) / own)
        for name, reported in least.items()
        if name in promised and (own := parse_quantity(promised[name])) > 0
    }
