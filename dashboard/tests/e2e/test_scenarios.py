"""Every scenario of the demo, played with its button in a real Chromium: the page shows what came
of it within 15 seconds. Says how long each took, and keeps a screenshot of each.
"""

import asyncio
import json
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from browser import Page, chromium, needs_chromium
from demoing import Demo, a_demo
from pictures import kept, picture

pytestmark = [pytest.mark.timeout(600), needs_chromium]
WITHIN_SECONDS = 15.0

ROW = "[...document.querySelectorAll('.vrow')].find(r => r.innerText.startsWith('{}'))"
FAILED = (
    "Number([...document.querySelectorAll('.legend button')]"
    ".find(b => b.innerText.startsWith('Failed')).querySelector('b').innerText)"
)
LISTED = "Number(document.querySelector('.vt-scroll').getAttribute('aria-rowcount') ?? NaN)"
REFUSED = (
    "Number(([...document.querySelectorAll('.tile')].find(t => t.innerText.startsWith('Failed "
    "Creates')).innerText.match(/(\\d+) out of capacity/) || [0, 0])[1])"
)
SILENT = "Number(document.querySelector('.tile').innerText.includes('silent'))"
EPOCH = "Number(document.querySelector('.tile').innerText.match(/epoch (\\d+)/)[1])"


def bound(cluster: str) -> str:
    """How many machines the table of clusters says one has."""
    return f"Number(({ROW.format(cluster)}).children[5].innerText)"


@dataclass(frozen=True, slots=True)
class Effect:
    """What is seen of a scenario: a number on a screen, or two, that go so far up or down."""

    screen: str
    moves: dict[str, int]
    at_last: dict[str, int] = field(default_factory=dict)
    """How it ends, however long that takes: a process starts as fast as its machine lets it."""


def happened(moves: dict[str, int], before: list[float]) -> str:
    """Whether numbers moved as they should, since they were these."""
    told = zip(moves.items(), before, strict=True)
    return " && ".join(
        f"{number} {'>=' if by > 0 else '<='} {value + by}" for (number, by), value in told
    )


# Each leaves room for the next: of a fleet that is bought already nothing can sell out.
EFFECTS = {
    "move": Effect("/clusters", {bound("atlas"): -3, bound("cirrus"): 3}),
    "soldout": Effect("/providers", {REFUSED: 1}),
    "saturate": Effect("/needs?verdict=unmet", {LISTED: 3}),
    "critical": Effect("/decisions?kind=Preempt", {LISTED: 3}),
    "spot": Effect("/", {FAILED: 5}),
    "zone": Effect("/", {FAILED: 20}),
    "coordinator": Effect(
        "/topology", {"Number(document.querySelector('.tile').classList.contains('bad'))": 1}
    ),
    "shard": Effect("/shards/s-1", {SILENT: 1}, {EPOCH: 1}),
}


def settled(overview: dict[str, Any]) -> bool:
    """Whether everybody has what was asked for first; the day goes on, and a few always move."""
    states = overview["machines"]["by_state"]
    moving = states["Creating"] + states["Configuring"]
    return bool(states["Configured"] > 60 and moving < 4 and not overview["needs"]["unmet"])


async def played(page: Page, demo: Demo, name: str) -> float:
    """Play one by its button; seconds until the page shows what came of it."""
    effect = EFFECTS[name]
    button = f"document.querySelector('[data-scenario={name}]')"
    numbers = f"[{', '.join([*effect.moves, *effect.at_last])}]"
    await page.open(demo.url + effect.screen)
    await page.until(f"{button} && {numbers}.every(Number.isFinite)")
    before = await page.value(numbers)
    began = asyncio.get_running_loop().time()
    await page.value(f"{button}.click()")
    first = len(effect.moves)
    await page.until(happened(effect.moves, before[:first]), 60)
    took = asyncio.get_running_loop().time() - began
    await picture(page, f"scenario-{name}")
    if effect.at_last:
        await page.until(happened(effect.at_last, before[first:]), 60)
    return took


async def test_every_scenario_shows_its_effect_on_the_page_within_fifteen_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    took = {}
    async with a_demo() as demo, chromium() as page:
        await demo.until("/overview", settled)
        listed = [each["name"] for each in (await demo.get("/demo"))["scenarios"]]
        assert sorted(listed) == sorted(EFFECTS)
        for name in EFFECTS:
            took[name] = round(await played(page, demo, name), 1)
        told = await page.value("document.querySelector('.demo-said').innerText")
        assert "The shard restarts" in told
        # A server that is away for a moment is not an error of the page.
        assert [c for c in page.complaints if "Failed to load resource" not in c] == []
    with capsys.disabled():
        sys.stdout.write(f"\nseconds until the page showed it: {took}\n")
    kept("scenario-seconds", ".json").write_text(json.dumps(took, indent=2) + "\n")
    assert {name: seconds for name, seconds in took.items() if seconds > WITHIN_SECONDS} == {}
