"""The stories of those who look after a fleet, told on a running demo: every `bash` block of their
pages, from top to bottom. Pages share a demo; the page of provider authors brings a provider and a
shard of its own. A change has two pages told, CI all of them.
"""

import asyncio
import contextlib
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from demoing import Demo, a_demo, free_addresses

pytestmark = pytest.mark.timeout(800)
ROOT = Path(__file__).parents[3]
STORIES = ROOT / "docs" / "user-stories"
BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = 150.0
SHOWN = {
    "finops.md": ("by_capacity_type_and_penalty", "spend per hour", "spot machines"),
    "capacity-planner.md": ("PRIORITY_STARVED", "unmet needs", "dollars per hour"),
    "platform-engineer.md": ("fake-zone-a", "1 of 1", "Restored", "coordinator.db is whole"),
    "provider-author.md": ("24 of 24 checks passed", "2 of 2", "whole and unmodified"),
    "reliability.md": ("reclaims_unforced_total 0.0", "first_decision_seconds ", "in vain: 0"),
    "on-call-for-the-fleet.md": ("s-1", "Coordinator"),
}


EVERY_CHANGE = ("finops.md", "on-call-for-the-fleet.md")
IN_CI = ("capacity-planner.md", "platform-engineer.md", "reliability.md")
WITHOUT_A_DEMO = ("provider-author.md",)


async def tell(page: str, demo: Demo | None) -> str:
    """Type what a page says into one shell; what it showed."""
    blocks = BLOCK.findall((STORIES / page).read_text(encoding="utf-8"))
    shard, provider = free_addresses(2)
    surroundings = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        **(places(demo) if demo is not None else {}),
        "SHARD2": shard,
        "PROVIDER2": provider,
        "NO_COLOR": "1",
        "COLUMNS": "160",
    }
    process = await asyncio.create_subprocess_exec(
        "bash", "-euo", "pipefail", "-x", "-c", "\n".join(blocks),
        cwd=ROOT, env=surroundings, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    except TimeoutError:
        end_all(process.pid)
        said, _ = await process.communicate()
        raise AssertionError(f"{page} is not over: {said[-3000:].decode()}") from None
    finally:
        end_all(process.pid)
    assert process.returncode == 0, said[-4000:].decode()
    return said.decode()


def places(demo: Demo) -> dict[str, str]:
    """Where a demo with ports of its own is, as the pages name it."""
    return {
        "DASHBOARD": demo.addresses["--dashboard-addr"],
        "BIGFLEETCTL_COORDINATOR": demo.addresses["--coordinator-addr"],
        "DEMO": str(demo.folder),
        "SHARD_HTTP": demo.addresses["--shard-metrics-addr"],
    }


def end_all(shell: int) -> None:
    """What a page left running when it failed half-way."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(shell, signal.SIGKILL)


def test_every_story_of_a_fleet_is_told_here() -> None:
    told = {page.name for page in STORIES.glob("*.md") if BLOCK.search(page.read_text("utf-8"))}
    assert told == set(SHOWN)
    assert sorted(told) == sorted((*EVERY_CHANGE, *IN_CI, *WITHOUT_A_DEMO))


async def told_as_shown(page: str, demo: Demo | None) -> None:
    """Tell a page and look for the words that its reader has to see."""
    shown = await tell(page, demo)
    for word in SHOWN[page]:
        assert word in shown, f"{page} does not show {word!r}"


@pytest.mark.long
@pytest.mark.parametrize(
    "pages", [EVERY_CHANGE, pytest.param(IN_CI, marks=pytest.mark.exhaustive)], ids="+".join
)
async def test_who_looks_after_a_fleet_can_do_what_their_pages_say(pages: tuple[str, ...]) -> None:
    async with a_demo() as demo:
        await demo.until("/overview", lambda o: o["machines"]["by_state"]["Configured"] > 40)
        for page in pages:
            await told_as_shown(page, demo)


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("page", WITHOUT_A_DEMO)
async def test_a_provider_author_can_do_what_the_page_says(page: str) -> None:
    await told_as_shown(page, None)
