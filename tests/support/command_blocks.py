"""Command blocks of Markdown pages: what a reader would paste into a terminal, and how it is run.

A block is indented by four or fenced, and its first line begins with a program that we document.
A comment before it may say that it is not run (`<!-- not run: REASON -->`) or that another test
runs it (`<!-- run by: PATH -->`). Every other block is run here, line by line, as a reader would:

- a line that ends with `&` is started, and the next one follows at once;
- a line that serves until Ctrl-C is started, and the next one follows when it is ready;
- the others are one script, which has to succeed.

A server ends an earlier one that has the same ports, as Ctrl-C does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from new_machine import NewMachine
from real_fleet import eventually

PROGRAMS: Final = re.compile(
    r"(\$ )?(\.venv/bin/)?(make|bigfleet[a-z-]*|helm|kubectl|docker|curl|openssl|git|export|pip)\b"
)
SERVERS: Final = re.compile(
    r"(\.venv/bin/)?(bigfleet (coordinator|shard|all-in-one|operator|pod-controller|dashboard) "
    r"|bigfleet-provider-|make run)"
)
SOCKETS: Final = (("all-in-one", 4), ("coordinator", 2), ("shard", 2), ("make run", 7))
"""How many sockets a server listens at when it is ready; the others one."""
SAME_PORTS: Final = (
    re.compile(r"make run|\S*bigfleet dashboard "),
    re.compile(r"make run|\S*bigfleet-provider-"),
    re.compile(r"\S*bigfleet (all-in-one|coordinator) "),
    re.compile(r"\S*bigfleet pod-controller\b"),
)
MARKER: Final = re.compile(r"<!-- (not run|run by): (.+) -->")
COMMENT: Final = re.compile(r"\s+# .*$")
_SERVES_WITHIN: Final = 90.0


@dataclass(frozen=True)
class Block:
    """One block: where it begins, its lines, and what its marker says."""

    page: Path
    line: int
    lines: tuple[str, ...]
    marker: str = ""
    """`not run`, `run by`, or nothing."""
    reason: str = ""


def blocks_of(page: Path) -> list[Block]:
    """The command blocks of a page, from top to bottom."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found, marker = [], ("", "")
    at = 0
    while at < len(lines):
        line = lines[at]
        if said := MARKER.fullmatch(line.strip()):
            marker = (said[1], said[2])
        begin, block = at, list[str]()
        if line.startswith("```"):
            at += 1
            while not lines[at].startswith("```"):
                block.append(lines[at])
                at += 1
        elif _is_indented(line) and (at == 0 or not lines[at - 1].strip()):
            while at < len(lines) and _is_indented(lines[at]):
                block.append(lines[at])
                at += 1
            at -= 1
            margin = min(len(each) - len(each.lstrip()) for each in block)
            block = [each[margin:] for each in block]
        if block:
            if PROGRAMS.match(block[0]):
                found.append(Block(page, begin + 1, tuple(block), *marker))
            marker = ("", "")
        at += 1
    return found


def _is_indented(line: str) -> bool:
    return line.startswith("    ") and bool(line.strip())


def steps_of(block: Block) -> Iterator[str]:
    """The commands of a block: servers one by one, what lies between them as scripts."""
    script: list[str] = []
    for command in re.sub(r"\\\n\s*", "", "\n".join(block.lines)).split("\n"):
        bare = COMMENT.sub("", command)
        if SERVERS.match(bare) or bare.endswith("&"):
            if script:
                yield "\n".join(script)
                script = []
            yield bare
        else:
            script.append(command)
    if script:
        yield "\n".join(script)


def run_block(block: Block, machine: NewMachine, folder: Path) -> str:
    """Do what the block says; what its scripts showed."""
    shown = ""
    for step in steps_of(block):
        for servers in SAME_PORTS:
            if servers.match(step):
                machine.stop(servers)
        if step.endswith("&"):
            machine.start(f"exec {step[:-1]}", folder)
        elif SERVERS.match(step):
            sockets = next((count for name, count in SOCKETS if f" {name} " in f" {step} "), 1)
            serve(machine, step, sockets, folder)
        else:
            shown += machine.run(step, folder)
    return shown


def serve(machine: NewMachine, command: str, sockets: int, folder: Path | None = None) -> None:
    """Start a server; returns when it listens at so many sockets more than there were."""
    wanted = len(machine.listening()) + sockets
    log = machine.start(f"exec {command}", folder)
    eventually(lambda: _serves(machine, wanted), f"{command} serves: {log}", _SERVES_WITHIN)


def _serves(machine: NewMachine, sockets: int) -> bool:
    machine.check_alive()
    return len(machine.listening()) >= sockets
