"""Films the demo: docs/images/demo.svg, a real run of `bigfleet demo` looked at in a real Chromium.

The page is photographed once or twice in each scene, while scenarios are played by their buttons.
The pictures become one animated SVG that a browser, and so a README, plays by itself. Also writes
the still docs/images/overview.png. Nothing is drawn by hand: a picture is what the page showed.

    python tools/record_demo.py [--folder docs/images]
"""

import argparse
import asyncio
import base64
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path += [str(ROOT / "dashboard" / "tests" / "support"), str(ROOT / "tests" / "support")]

from browser import Page, chromium, find_chromium  # noqa: E402
from demoing import Demo, a_demo  # noqa: E402

WIDTH, HEIGHT, SCALE = 1440, 900, 0.58
SECONDS, QUALITY = 2.2, 12
"""A picture is shown for so long; how well it is kept, of 100."""
MOST_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class Scene:
    """A screen, a scenario to play there, how many pictures, and what to press before."""

    screen: str
    scenario: str
    pictures: int = 1
    press: str = ""
    wait: float = 2.0
    """Seconds before each picture."""


SCENES = (
    Scene("/", ""),
    Scene("/", "zone", 2, wait=3.0),
    Scene("/needs", "saturate", wait=5.0),
    Scene("/needs?verdict=unmet", "", press="document.querySelector('.vrow').click()"),
    Scene("/decisions", "critical", wait=5.0),
    Scene("/whatif", "", press="document.querySelectorAll('.presets button')[1].click()"),
    Scene("/cost", ""),
)


async def photograph(page: Page) -> bytes:
    """What is seen, small."""
    whole = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": SCALE}
    picture = await page.call("Page.captureScreenshot", format="webp", quality=QUALITY, clip=whole)
    return base64.b64decode(picture["data"])


async def act(page: Page, demo: Demo, scene: Scene) -> list[bytes]:
    """Play one scene."""
    await page.open(demo.url + scene.screen)
    await page.until("document.getElementById('screen').dataset.shown")
    await page.until("document.querySelector('[data-scenario]')")
    if scene.press:
        await page.until(f"{scene.press.removesuffix('.click()')} && true")
        await page.value(scene.press)
        await page.until("!document.querySelector('.primary[disabled]')", 60)
    if scene.scenario:
        await page.value(f"document.querySelector('[data-scenario={scene.scenario}]').click()")
    found = []
    for _ in range(scene.pictures):
        await asyncio.sleep(scene.wait)
        found.append(await photograph(page))
    return found


async def film(folder: Path) -> list[bytes]:
    """All scenes; the still is taken when the fleet has settled."""
    async with a_demo() as demo, chromium(WIDTH, HEIGHT) as page:
        await demo.until("/overview", lambda o: o["machines"]["by_state"]["Configured"] > 80)
        await page.open(demo.url)
        await page.until("document.querySelector('.legend button')")
        # Charts of a few seconds say little.
        await asyncio.sleep(45)
        await page.screenshot(folder / "overview.png")
        taken: list[bytes] = []
        for scene in SCENES:
            print(f"  {scene.screen} {scene.scenario}", file=sys.stderr, flush=True)
            taken += await act(page, demo, scene)
        if page.complaints:
            raise SystemExit(f"the page complains: {page.complaints[:3]}")
        return taken


def animated(pictures: Sequence[bytes]) -> str:
    """One SVG in which the pictures follow each other without end."""
    seconds = len(pictures) * SECONDS
    share = 100 / len(pictures)
    shown = "".join(
        f'<image class="p" style="animation-delay:{n * SECONDS:.2f}s" width="{WIDTH}" '
        f'height="{HEIGHT}" href="data:image/webp;base64,{base64.b64encode(each).decode()}"/>\n'
        for n, each in enumerate(pictures)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}">\n'
        f"<title>BigFleet's dashboard while a zone fails, demand exceeds the fleet and a critical "
        "job preempts batch work</title>\n"
        f"<style>.p{{visibility:hidden;animation:p {seconds:.2f}s steps(1) infinite}}"
        f"@keyframes p{{0%{{visibility:visible}}{share:.4f}%{{visibility:hidden}}}}</style>\n"
        f"{shown}</svg>\n"
    )


def main(argv: Sequence[str]) -> int:
    """Film, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "images")
    folder: Path = parser.parse_args(argv).folder
    if find_chromium() is None:
        print("there is no Chromium here: apt-get install chromium", file=sys.stderr)
        return 1
    text = animated(asyncio.run(film(folder)))
    if len(text) > MOST_BYTES:
        print(
            f"{len(text):,} bytes: lower QUALITY or SCALE, or take fewer pictures", file=sys.stderr
        )
        return 1
    (folder / "demo.svg").write_text(text, "utf-8")
    print(f"{folder / 'demo.svg'}: {len(text):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
