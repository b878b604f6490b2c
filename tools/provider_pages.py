"""Writes the generated parts of each provider's pages from its declaration and its stored reports.

    python tools/provider_pages.py            writes them
    python tools/provider_pages.py --check    says whether they are fresh; `make docs` does

A part stands between two comments, and everything around it belongs to people:

    <!-- generated: options -->
    <!-- end of generated -->

Each page has to have its part; that of the certification only once a report is stored. Who writes
the registry of all providers: `provider_registry`.
"""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bigfleet_providerkit.calls.limiter import DEFAULT_RATE
from bigfleet_providerkit.machines.state import CapacityType
from bigfleet_providerkit.offerings.fields import offering_table
from bigfleet_providerkit.options.help import option_table
from bigfleet_providerkit.options.model import KitOptions
from bigfleet_providerkit.spec import CallRate, ProviderSpec
from provider_registry import ROOT, Provider, Report, declaration, link, providers

END = "<!-- end of generated -->"
PART = re.compile(r"<!-- generated: (\w+) -->\n(.*?)" + re.escape(END), re.DOTALL)
OWN_OF_THE_KIT = frozenset({"provider", "image"})
"""Options of the kit whose default or meaning each provider sets."""
METRICS = ROOT / "docs" / "reference" / "metrics.md"
GIB = 1024**3

Write = Callable[["Subject"], str]


class PagesError(Exception):
    """A page lacks its part, or has one that nothing writes."""


class Subject:
    """One provider with its declaration and its pages."""

    def __init__(self, provider: Provider, spec: ProviderSpec[Any]) -> None:
        self.provider = provider
        self.spec = spec
        self.folder = provider.page.parent


def options(subject: Subject) -> str:
    """The provider's own options, beside those of the kit."""
    kit = set(KitOptions.model_fields) - OWN_OF_THE_KIT
    return option_table(subject.spec.options, lambda name: name not in kit)


def offerings(subject: Subject) -> str:
    """The fields of an offering."""
    return offering_table(subject.spec)


def calls(subject: Subject) -> str:
    """Names of API calls, with the rate of the bucket that each group shares."""
    rows = ["| op | calls a second | burst |", "| --- | --- | --- |"]
    for call in subject.spec.calls:
        shared = CallRate((call,), DEFAULT_RATE) if isinstance(call, str) else call
        names = ", ".join(f"`{op}`" for op in shared.ops)
        together = " together" if len(shared.ops) > 1 else ""
        burst = max(1.0, shared.rate / 5) if shared.burst is None else shared.burst
        rows.append(f"| {names} | {shared.rate:g}{together} | {burst:g} |")
    return "\n".join(rows) + "\n"


def prices(subject: Subject) -> str:
    """The shipped prices, shapes and forecasts."""
    spec = subject.spec
    spot = CapacityType.SPOT in spec.capacity_types
    heads = ["type", f"{spec.currency} an hour", "vCPUs", "GiB"]
    table = spec.interruption
    heads += [f"spot taken back in one {table.horizon}"] if spot else []
    rows = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    listed: dict[str, set[float]] = {}
    for key, price in spec.prices.values.items():
        if key.capacity_type is CapacityType.ON_DEMAND:
            listed.setdefault(key.instance_type, set()).add(price)
    for name, found in listed.items():
        shape = spec.shapes.get(name)
        cells = [name, " to ".join(f"{price:g}" for price in sorted(found))]
        cells += [f"{shape.cpu / 1000:g}", f"{shape.memory / GIB:g}"] if shape else ["", ""]
        cells += [f"{table.values.get(name, table.otherwise):.1%}"] if spot else []
        rows.append(f"| {' | '.join(cells)} |")
    return f"Dated {spec.prices.dated.isoformat()}.\n\n" + "\n".join(rows) + "\n"


def certification(subject: Subject) -> str:
    """The last stored reports."""
    rows = ["| substrate | report | baseline | additions |", "| --- | --- | --- | --- |"]
    for substrate, report in _reports(subject.provider).items():
        target = link(subject.folder, report.folder / "README.md")
        cells = (substrate, f"[{report.date}]({target})", report.baseline, report.additions)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _reports(provider: Provider) -> dict[str, Report]:
    both = {"memory": provider.memory, "HTTP": provider.http}
    return {substrate: report for substrate, report in both.items() if report is not None}


PARTS: Mapping[str, tuple[str, Write]] = {
    "options": ("configuration.md", options),
    "offerings": ("configuration.md", offerings),
    "calls": ("observability.md", calls),
    "prices": ("pricing-and-interruption.md", prices),
    "certification": ("certification.md", certification),
}


def with_parts(text: str, where: str, write: Mapping[str, Callable[[], str]]) -> str:
    """A page with these parts written again."""
    for name in write:
        if f"<!-- generated: {name} -->" not in text:
            raise PagesError(f"{where} lacks <!-- generated: {name} --> ... {END}")

    def written(match: re.Match[str]) -> str:
        make = write.get(match[1])
        if make is None:
            known = ", ".join(sorted(write)) or "none"
            raise PagesError(f"{where}: nothing writes the part {match[1]!r}; it may have {known}")
        return f"<!-- generated: {match[1]} -->\n{make()}{END}"

    return PART.sub(written, text)


def pages_of(subject: Subject) -> dict[Path, str]:
    """Every page with a generated part, as it should be."""
    wanted: dict[Path, dict[str, Callable[[], str]]] = {}
    for name, (page, make) in PARTS.items():
        if name != "certification" or _reports(subject.provider):
            place = subject.folder / page
            wanted.setdefault(place, {})[name] = lambda make=make: make(subject)  # type: ignore[misc]
    return {
        place: with_parts(place.read_text("utf-8"), str(place.relative_to(ROOT)), write)
        for place, write in wanted.items()
    }


def subjects() -> list[Subject]:
    """The providers that have nine pages, and the template that new ones are copied from."""
    folder = ROOT / "providers"
    template = Provider("_template", folder / "_template/docs/index.md", (), "", None, None)
    return [
        Subject(provider, declaration(folder / provider.name / "pyproject.toml"))
        for provider in (template, *providers())
        if provider.page.name == "index.md"
    ]


def unknown_series(subject: Subject) -> list[str]:
    """Series that a page names and no provider exports."""
    exported = METRICS.read_text("utf-8")
    return [
        f"{page.relative_to(ROOT)} names {name}, which no provider exports"
        for page in sorted(subject.folder.glob("*.md"))
        for name in re.findall(r"bigfleet_provider_[a-z_]+", page.read_text("utf-8"))
        if f"`{name}`" not in exported
    ]


def main(words: list[str]) -> int:
    """Write, or check."""
    try:
        known = subjects()
        wanted = {path: text for one in known for path, text in pages_of(one).items()}
        unknown = [problem for one in known for problem in unknown_series(one)]
        if unknown:
            raise PagesError("\n".join(unknown))
    except PagesError as error:
        print(error)
        return 1
    old = [path for path, text in wanted.items() if path.read_text("utf-8") != text]
    for path in old:
        if words == ["--check"]:
            print(f"{path.relative_to(ROOT)} is old: run python tools/provider_pages.py")
        else:
            path.write_text(wanted[path], "utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if old and words == ["--check"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
