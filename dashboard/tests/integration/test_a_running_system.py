"""The whole system as `make run` starts it: every source, scenarios, an end without a trace."""

import asyncio
import json
import sys

import pytest

from demoing import Demo, a_demo, start

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]
A_DEAD_PROXY = {"http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1"}
"""What a laptop away from its office has: nothing outside can be reached."""


async def a_doctors_findings(demo: Demo) -> list[dict[str, str]]:
    """What `bigfleet doctor` says of the running system."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bigfleet.cli.main", "doctor", "--output", "json",
        "--data-dir", str(demo.folder), "--coordinator", demo.addresses["--coordinator-addr"],
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, _ = await asyncio.wait_for(process.communicate(), 60)
    found: list[dict[str, str]] = json.loads(said)
    return found


async def test_a_system_starts_shows_itself_reacts_and_ends_without_a_trace() -> None:
    async with a_demo(A_DEAD_PROXY) as demo:
        overview = await demo.until(
            "/overview", lambda o: o["machines"]["by_state"]["Configured"] > 40
        )
        assert overview["machines"]["total"] == 120
        assert overview["shards"] == {"total": 1, "answering": 1}
        assert overview["leader"] == demo.addresses["--coordinator-addr"]
        states = {source["name"]: source["state"] for source in overview["sources"]}
        assert states["coordinator"] == "ok"
        assert states["prometheus"] == states["cluster objects"] == "off"

        shard = await demo.until("/shards/s-1", lambda s: s["cycles"] and s["phases_ms"]["p99"])
        assert shard["session_clusters"] == ["atlas", "borealis", "cirrus"]
        assert shard["providers"][0]["reachable"]
        decisions = (await demo.get("/decisions"))["decisions"]
        assert {"kind", "machine", "cluster", "reason", "cost_per_hour", "outcome"} <= set(
            decisions[0]
        )
        providers = await demo.until(
            "/providers", lambda p: p["providers"][0]["shards"][0]["methods"]
        )
        assert providers["prices"]

        status, answer = await demo.post(
            "/whatif",
            {"shard": "s-1", "changes": [{"kind": "lose", "share": 1, "zone": "north-1b"}]},
        )
        assert status == 200
        assert answer["after"]["machines"] < answer["before"]["machines"]

        found = await a_doctors_findings(demo)
        assert [f for f in found if f["verdict"] == "wrong"] == []
        assert any(f["about"] == "Provider simcloud" for f in found)

        status, answer = await demo.post("/demo", {"name": "nonsense"})
        assert (status, list(answer)) == (400, ["error"])
        await demo.post("/demo", {"name": "saturate"})
        needs = await demo.until("/needs?verdict=unmet", lambda n: n["total"] > 0)
        told = await demo.get(f"/needs/{needs['needs'][0]['key']}")
        assert told["why"]
        assert told["helps"]

        epoch = (await demo.get("/shards/s-1"))["epoch"]
        await demo.post("/demo", {"name": "shard"})
        again = await demo.until("/shards/s-1", lambda s: s["answering"] and s["epoch"] > epoch)
        assert again["machines"] == 120

        assert len(demo.children()) >= 5
        assert await demo.stop() < 5.0
        assert demo.process.returncode == 0
        assert demo.children() == set()

        restarted = await start(demo.folder, demo.http)
        try:
            back = await restarted.until(
                "/overview", lambda o: o["clusters"]["connected"] == 3, 110
            )
            assert back["machines"]["by_state"]["Configured"] > 0
        finally:
            # Even who is killed leaves no process behind.
            restarted.process.kill()
            await restarted.process.wait()
            await restarted.until_none_is_left()
