"""Commands that documents name exist, with every flag they are shown with.

Blocks that a test runs are run elsewhere; this looks at all of them, in blocks and in sentences, so
that none names what is no longer there.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from bigfleet.cli.ctl.main import app as ctl
from bigfleet.cli.lazy_commands import COMMANDS
from bigfleet.cli.main import app
from bigfleet_conformance.cli.main import app as conformance

ROOT = Path(__file__).parents[3]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *(page for folder in ("guides", "user-stories", "reference", "providers", "internals")
      for page in sorted((ROOT / "docs" / folder).rglob("*.md"))),
]  # fmt: skip
PROGRAMS = {"bigfleet": app, "bigfleetctl": ctl, "bigfleet-conformance": conformance}
ENDS = re.compile(r"\s{2,}|\s[|&;>#](\s|$)|\$\(|&&|\|\|")
"""Where a shell goes on with something else."""


def named(page: Path) -> Iterator[str]:
    """Lines of blocks, and what stands between back-ticks."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    yield from (line.strip() for line in text.splitlines() if line.startswith("    "))
    yield from re.findall(r"`([^`\n]+)`", text)


def commands(page: Path) -> list[list[str]]:
    found = []
    for line in named(page):
        words = ENDS.split(line.removeprefix("$ "), maxsplit=1)[0]
        try:
            split = shlex.split(words)
        except ValueError:
            continue
        if split and split[0].removeprefix(".venv/bin/") in {*PROGRAMS, "make"}:
            found.append([split[0].removeprefix(".venv/bin/"), *split[1:]])
    return found


def flags_of(words: list[str]) -> tuple[set[str], list[str]]:
    """The flags a command has, and those it is shown with; raises for one that there is not."""
    command: Any = get_command(PROGRAMS[words[0]])
    known = {"--help"} | {name for param in command.params for name in param.opts}
    rest = words[1:]
    while rest:
        word = rest[0]
        inner = getattr(command, "commands", {})
        if command.name == "bigfleet" and word in COMMANDS:
            command = COMMANDS[word].make(word)
        elif word in inner:
            command = inner[word]
        elif inner and re.fullmatch(r"[a-z][a-z-]+", word):
            raise AssertionError(f"there is no command {word!r}")
        else:
            # A flag of the program and its value may stand before the command.
            rest = rest[1:] if "=" in word or not word.startswith("-") else rest[2:]
            if not inner:
                break
            continue
        known |= {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
        rest = rest[1:]
    shown = [word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)]
    return known, shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_exists(page: Path) -> None:
    targets = set(re.findall(r"(?m)^([a-z][\w-]*):", (ROOT / "Makefile").read_text("utf-8")))
    for words in commands(page):
        if words[0] == "make":
            wanted = {word for word in words[1:] if re.fullmatch(r"[a-z][a-z-]*", word)}
            assert {w for w in wanted - targets if not w.startswith("conformance-")} == set(), words
            continue
        known, shown = flags_of(words)
        assert [flag for flag in shown if flag not in known] == [], " ".join(words)


def test_there_are_many() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 200


FIRST = ("concepts", "plan-and-bench", "run-a-shard", "run-the-control-plane", "simulate-clusters",
         "dashboard", "bigfleetctl")  # fmt: skip
"""Guides that a user with a checkout reads first."""


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "tools" / "setup.sh",
                                  *(ROOT / "docs" / "guides" / f"{name}.md" for name in FIRST)],
                         ids=lambda page: page.stem)  # fmt: skip
def test_where_commands_are_called_by_name_it_says_how_the_shell_finds_them(page: Path) -> None:
    assert re.search(r"export PATH=.*\$PATH", page.read_text("utf-8"))
