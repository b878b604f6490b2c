"""Where screenshots of the tests are kept: DASHBOARD_SCREENSHOTS, or `screenshots` beside them."""

from __future__ import annotations

import os
from pathlib import Path

from browser import Page


def kept(name: str, suffix: str = ".png") -> Path:
    """The file of this name."""
    given = os.environ.get("DASHBOARD_SCREENSHOTS")
    folder = Path(given) if given else Path(__file__).parent.parent / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}{suffix}"


async def picture(page: Page, name: str) -> None:
    """Keep what is seen."""
    await page.screenshot(kept(name))
