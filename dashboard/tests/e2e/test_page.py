"""The page in a real Chromium, over states a demo does not come to: nothing, much, and trouble."""

import json

import pytest

from bigfleet_dashboard.state.coordinator import CoordinatorView
from bigfleet_dashboard.state.fleet import Fleet
from browser import Page, chromium, needs_chromium
from standing import a_page_over
from worlds_of_machines import CONFIGURED, add_shard, fleet_of, machine, need

pytestmark = [pytest.mark.timeout(300), needs_chromium]
SHOWN = "document.getElementById('screen').dataset.shown"
ROW = "document.querySelector('.vrow')"
FITS = "(e => e.scrollWidth <= e.clientWidth)"


def starved() -> Fleet:
    """A fleet with an unmet need of the highest class."""
    machines = [machine(f"m-{n}", CONFIGURED, cluster="atlas") for n in range(120)]
    needs = [need("atlas", 1_000_000, reason=1), need("borealis", 100, reason=3)]
    return fleet_of(machines, needs, ["atlas"])


async def show(page: Page, url: str, screen: str) -> None:
    await page.open(url)
    await page.until(f"{SHOWN} === {screen!r}")


async def test_a_phone_shows_whole_numbers_and_does_not_scroll_sideways() -> None:
    async with a_page_over(starved()) as (url, _), chromium(390, 844, 2) as page:
        for path in ("needs", "clusters", "shards", "machines"):
            await show(page, f"{url}/{path}", path)
            await page.until(ROW)
            await page.until("!document.getElementById('nav-unmet').hidden")
            assert await page.value(f"{FITS}(document.documentElement)"), path
            assert await page.value(f"{FITS}(document.querySelector('.vt-scroll'))"), path
            cut = f"[...{ROW}.children].filter(e => !{FITS}(e)).map(e => e.innerText)"
            assert await page.value(cut) == [], path
            assert await page.value("document.querySelector('.side').offsetHeight") < 80, path
        assert page.complaints == []


async def test_a_wide_screen_shows_a_whole_priority() -> None:
    async with a_page_over(starved()) as (url, _), chromium(1400, 900) as page:
        await show(page, f"{url}/needs", "needs")
        await page.until(f"{ROW}?.innerText.includes('1,000,000')")
        cell = f"[...{ROW}.children].find(e => e.innerText === '1,000,000')"
        assert await page.value(f"{FITS}({cell})")
        heads = "[...document.querySelectorAll('.vt-head > *')]"
        assert await page.value(f"{heads}.filter(e => !{FITS}(e)).map(e => e.innerText)") == []
        assert await page.value(f"{FITS}(document.querySelector('.vt-scroll'))")


async def test_what_if_asks_the_shard_that_was_chosen() -> None:
    fleet = fleet_of([machine("m-1")])
    add_shard(fleet, [machine("m-2")], shard="s-2")
    async with a_page_over(fleet) as (url, _), chromium() as page:
        await show(page, f"{url}/whatif", "whatif")
        await page.until("document.querySelectorAll('select').length >= 4")
        await page.value(
            "window.sent = []; const asked = window.fetch; window.fetch = (to, how) => {"
            " if (how?.body) window.sent.push(how.body); return asked(to, how); };"
            " const el = [...document.querySelectorAll('select')].find(e => e.value === 's-1');"
            " el.value = 's-2'; el.dispatchEvent(new Event('change'));"
            " document.querySelector('.primary').click()"
        )
        await page.until("window.sent.length")
        assert json.loads(await page.value("window.sent[0]"))["shard"] == "s-2"


async def test_a_page_that_a_proxy_refused_comes_back_by_itself() -> None:
    fleet = fleet_of([machine("m-1")])
    live = "document.getElementById('live').textContent"
    async with a_page_over(fleet) as (url, door), chromium() as page:
        door.closed = "/api/v1/events"
        await show(page, url, "overview")
        await page.until(f"{live} === 'Reconnecting'")
        assert door.refused
        door.closed = ""
        await page.until(f"{live} === 'Live'")


async def test_nothing_is_said_in_words_and_not_called_fine() -> None:
    fleet = Fleet(clock=lambda: 1000.0)
    fleet.coordinator = CoordinatorView(at_seconds=999.0, leader="c-1:7790")
    fleet.machines_changed()
    async with a_page_over(fleet) as (url, _), chromium() as page:
        await show(page, url, "overview")
        await page.until("document.querySelector('.map-wrap').innerText.includes('No machine')")
        said = await page.value("document.body.innerText")
        assert "no shard has registered" in said
        for untrue in ("Nothing needs attention", "all answer", "all connected", "is met"):
            assert untrue not in said
        await show(page, f"{url}/needs", "needs")
        await page.until("document.body.innerText.includes('No cluster has sent demand yet')")
        for path, screen in (("shards/s-9", "shard"), ("clusters/%25zz", "cluster")):
            await show(page, f"{url}/{path}", screen)
            await page.until("document.querySelector('.error')?.innerText.includes('there is no')")
            empty = (
                "[...document.querySelectorAll('main .panel')].filter(e => e.offsetParent).length"
            )
            assert await page.value(empty) == 0
