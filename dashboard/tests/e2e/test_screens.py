"""Every screen in a real Chromium, on a running system: facts, movement, and no complaints.

Needs a Chromium (Debian's package will do). Screenshots are kept.
"""

import asyncio
from importlib.resources import files
from typing import Any

import pytest

from browser import Page, chromium, needs_chromium
from demoing import Demo, a_demo
from pictures import picture

pytestmark = [pytest.mark.timeout(600), needs_chromium]
ROWS = "document.querySelectorAll('.vrow').length"
METERS = "document.querySelectorAll('.meter').length"
SCREENS = {
    "/": "document.querySelectorAll('.tile').length >= 7 && document.querySelector('canvas')",
    "/shards": "document.querySelector('.vrow')?.innerText.includes('s-1')",
    "/shards/s-1": "document.querySelectorAll('.phase').length === 9",
    "/clusters": f"{ROWS} === 3",
    "/clusters/atlas": f"{METERS} && {ROWS}",
    "/machines": f"{ROWS} > 5",
    "/needs": f"{ROWS} >= 5",
    "/decisions": f"{ROWS} >= 5",
    "/topology": "document.body.innerText.includes('north-1a')",
    "/providers": "document.body.innerText.includes('simcloud')",
    "/cost": f"{METERS} >= 3",
    "/whatif": "document.querySelector('.primary')",
}
SERIOUS = ("serious", "critical")


async def show(page: Page, demo: Demo, path: str) -> None:
    await page.open(demo.url + path)
    await page.until(SCREENS[path])


def lasting(needs: list[dict[str, Any]]) -> bool:
    return bool(needs) and all(need["age_cycles"] > 3 for need in needs)


async def accessible(page: Page) -> list[str]:
    """What axe finds that is serious."""
    script = (files("axe_core_python") / "axe.min.js").read_text("utf-8")
    await page.value(f"(() => {{ {script}; return true; }})()")
    found: list[dict[str, Any]] = await page.value(
        "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => "
        "({id: v.id, impact: v.impact, nodes: v.nodes.slice(0, 3).map(n => n.html)})))"
    )
    return [f"{v['id']}: {v['nodes']}" for v in found if v["impact"] in SERIOUS]


async def test_every_screen_shows_facts_in_both_themes_and_complains_of_nothing() -> None:
    async with a_demo() as demo, chromium() as page:
        await demo.until("/overview", lambda o: o["machines"]["by_state"]["Configured"] > 40)
        findings = {}
        for path in SCREENS:
            for dark in (False, True):
                await page.dark(dark)
                await show(page, demo, path)
                name = f"{path.strip('/').replace('/', '-') or 'overview'}{'-dark' if dark else ''}"
                await asyncio.sleep(0.5)
                await picture(page, name)
                findings[name] = await accessible(page)
        await page.dark(False)
        await page.resize(390, 844, 2)
        for path in ("/", "/needs", "/clusters/atlas"):
            await show(page, demo, path)
            wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            await page.until(wide)
            await picture(page, f"phone-{path.strip('/').replace('/', '-') or 'overview'}")
        assert {name: found for name, found in findings.items() if found} == {}
        assert page.complaints == []


async def reached_by_tab(page: Page, times: int) -> set[str]:
    """Everything the focus comes to, by what it is or leads to."""
    said = (
        "(e => e.dataset.scenario || e.getAttribute('href') || e.tagName)(document.activeElement)"
    )
    found = set()
    for _ in range(times):
        await page.press("Tab")
        found.add(str(await page.value(said)))
    return found


async def test_the_focus_comes_everywhere_and_stays_while_the_page_moves() -> None:
    async with a_demo() as demo, chromium() as page:
        await show(page, demo, "/")
        await page.until("document.querySelector('.legend button')")
        reached = await reached_by_tab(page, 60)
        assert {"/needs", "/whatif", "zone", "/cost", "CANVAS", "BUTTON"} <= reached
        await page.value("document.querySelector('a.tile[href=\"/cost\"]').focus()")
        before = await page.value("document.querySelector('a.tile[href=\"/cost\"]').innerText")
        await demo.post("/demo", {"name": "zone"})
        now = "document.querySelector('a.tile[href=\"/cost\"]')"
        await page.until(f"{now}.innerText !== {before!r}")
        await page.until(f"document.activeElement === {now}")
        await page.press("Enter")
        await page.until("document.getElementById('screen').dataset.shown === 'cost'")
        assert page.complaints == []


async def test_the_page_moves_explains_answers_and_works_with_a_keyboard() -> None:
    async with a_demo() as demo, chromium() as page:
        await show(page, demo, "/decisions")
        before = await page.value("document.querySelector('.vt-scroll').ariaRowCount")
        await demo.post("/demo", {"name": "saturate"})
        await page.until(
            f"document.querySelector('.vt-scroll').getAttribute('aria-rowcount') != '{before}'"
        )

        # Needs that only wait for machines on their way would be met before they are looked at.
        await demo.until("/needs?verdict=unmet", lambda n: lasting(n["needs"]))
        await page.press("g", "n")
        await page.until("document.getElementById('screen').dataset.shown === 'needs'")
        await page.until("document.querySelector('.vrow .chip.warn, .vrow .chip.bad')")
        await page.value("document.querySelector('.vt-scroll').focus()")
        await page.press("ArrowDown", "Enter")
        await page.until("!document.getElementById('drawer').hidden")
        await page.until("document.getElementById('drawer').innerText.includes('WHAT WOULD HELP')")
        await picture(page, "drawer")
        await page.press("Escape")
        await page.until("document.getElementById('drawer').hidden")

        await page.press("g", "w")
        await page.until("document.querySelector('.primary')")
        await page.value("document.querySelector('.primary').click()")
        await page.until("document.querySelector('.compare')", 90)
        await picture(page, "whatif-answer")

        await page.press("g", "o")
        await page.until("document.getElementById('screen').dataset.shown === 'overview'")
        await page.until("document.querySelector('.legend button')")
        await page.value("document.querySelector('canvas').focus()")
        await page.press("ArrowRight", "ArrowRight")
        await page.until("document.querySelector('.map-wrap [role=status]').textContent.length > 5")
        await page.press("Enter")
        await page.until("document.getElementById('drawer').innerText.includes('north-1')")
        assert page.complaints == []
