"""The executable `bigfleet-provider-fake`: for tests and demonstrations, for nothing else."""

from __future__ import annotations

import os
import sys

import bigfleet_providerkit
from bigfleet_lab.fake.spec import FakeOptions, spec_for
from bigfleet_providerkit import StartError
from bigfleet_providerkit.options.help import help_text, print_text
from bigfleet_providerkit.options.parse import parse_options

SUMMARY = (
    "TEST-ONLY: a capacity provider whose machines exist in memory. For tests, demonstrations and\n"
    "certification of the protocol; it never starts a real host and belongs in no deployment."
)


def main() -> None:
    """Serve, or do what the command line says."""
    words = sys.argv[1:]
    if any(word.startswith("-") and word.lstrip("-") in ("help", "h") for word in words):
        print_text(help_text("bigfleet-provider-fake", SUMMARY, FakeOptions))
        return
    bigfleet_providerkit.main(spec_for(_options(words)))


def _options(words: list[str]) -> FakeOptions:
    """The options the declaration is made from.

    Where they cannot be read the kit, which reads them again, says so in its own way.
    """
    try:
        options, _ = parse_options(FakeOptions, words, os.environ)
    except StartError:
        return FakeOptions()
    return options


if __name__ == "__main__":
    main()
