"""What README and guides tell a reader to type works as it is written.

Each page is read from top to bottom on a machine of its own: no variable of ours is set, the
default ports are free, and the folder is a new user's own unless the page says that it is a
checkout. Names such as `c-1` have addresses of their own, so that what is written for several
machines has to reach from one to the other.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from command_blocks import Block, blocks_of, run_block, serve
from kube_http import KUBECONFIG
from new_machine import ROOT, NewMachine

GUIDES = ROOT / "docs" / "guides"
PAGES = [ROOT / "README.md", *sorted(GUIDES.glob("*.md"))]
HOSTS = {
    "c-1": "10.7.0.1", "s-1": "10.7.0.11", "s-2": "10.7.0.12", "provider": "10.7.0.21",
}  # fmt: skip
NOT_RUN = {
    "README.md": 2, "install.md": 6, "plan-and-bench.md": 2, "run-an-operator.md": 1,
    "run-the-control-plane.md": 1,
    "upgrades.md": 1,
}  # fmt: skip
"""How many blocks of a page are marked as not run. These numbers only go down."""


def marked(page: Path, marker: str) -> list[Block]:
    return [block for block in blocks_of(page) if block.marker == marker]


def a_provider(machine: NewMachine) -> None:
    serve(machine, "bigfleet-provider-fake", 2)


def providers(machine: NewMachine) -> None:
    a_provider(machine)
    command = "bigfleet-provider-fake --addr provider:9001 --allow-plaintext --metrics-addr 0"
    serve(machine, command, 1)


def a_coordinator(machine: NewMachine) -> None:
    machine.start("exec bigfleet coordinator --listen c-1:7790 --allow-plaintext --metrics-addr 0")


def a_fleet(machine: NewMachine) -> None:
    a_provider(machine)
    machine.start("exec bigfleet all-in-one --provider-addr fake=127.0.0.1:9001")
    machine.run("bigfleetctl status --wait 60s")


def a_cluster(machine: NewMachine) -> None:
    folder = machine.home / ".kube"
    folder.mkdir()
    (folder / "config").write_text(KUBECONFIG.format(server="http://127.0.0.1:1"), "ascii")


WORLDS: dict[str, Callable[[NewMachine], None]] = {
    "README.md": lambda _machine: None,
    "dashboard.md": a_coordinator,
    "run-a-shard.md": lambda _machine: None,
    "run-an-operator.md": a_cluster,
    "run-the-control-plane.md": providers,
    "scale-tests.md": lambda _machine: None,
    "security.md": lambda _machine: None,
    "simulate-clusters.md": a_fleet,
}
"""What the text of a page says that there is already."""
IN_A_CHECKOUT = {"README.md", "dashboard.md"}
LONG = {"dashboard.md", "run-the-control-plane.md", "simulate-clusters.md"}
"""Pages that take tens of seconds: only CI runs them."""


def checkout(folder: Path) -> Path:
    """A checkout that is set up, without what was run in it."""
    folder.mkdir()
    for entry in ROOT.iterdir():
        if entry.name not in {".bigfleet", ".git"}:
            (folder / entry.name).symlink_to(entry)
    return folder


def test_every_block_is_run_or_says_why_not() -> None:
    left = Counter({page.name: len(marked(page, "not run")) for page in PAGES})
    assert +left == NOT_RUN
    run = {page.name for page in PAGES if any(not block.marker for block in blocks_of(page))}
    assert run == set(WORLDS)


def test_what_is_run_by_another_test_is_named_there() -> None:
    for page in PAGES:
        for block in marked(page, "run by"):
            assert page.name in (ROOT / block.reason).read_text("utf-8"), (page, block.reason)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.exhaustive if page.name in LONG else pytest.mark.long)
        for page in PAGES
        if page.name in WORLDS
    ],
    ids=lambda page: page.name,
)
def test_a_page_works_as_it_is_written(page: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    folder = checkout(tmp_path / "bigfleet") if page.name in IN_A_CHECKOUT else home
    with NewMachine(home, HOSTS) as machine:
        WORLDS[page.name](machine)
        for block in blocks_of(page):
            if not block.marker:
                run_block(block, machine, folder)
        machine.check_alive()
