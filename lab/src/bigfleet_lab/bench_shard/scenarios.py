"""One function per bar of a running shard; each asserts that the work was done."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from bigfleet_api.v1alpha1 import shard_pb2
from bigfleet_lab.bench.rows import expect
from bigfleet_lab.bench_shard.processes import ShardBench, running
from bigfleet_lab.simulate.workloads import make_workload

CYCLES: Final = 60
"""Cycles measured in a steady run."""
_BEAT: Final = 10.0
_HELLOS: Final = 60
_MS: Final = 1e6


def steady(machines: int) -> dict[str, Any]:
    """Whole cycles of a shard whose demand keeps changing a little.

    Also how fast a Hello is answered meanwhile, and what memory it takes.
    """
    needs = len(make_workload("steady", machines).scenario.needs)
    with running("steady", machines, interval=_BEAT) as bench:
        shard = bench.shard
        settled = settle(bench, needs)
        hellos = asyncio.run(_hellos(shard.address))
        last = shard.wait_cycle("number", 300.0, cycle=settled + CYCLES)["cycle"]
        cycles = [c for c in shard.cycles(settled) if c["needs"] >= needs][: max(CYCLES, 1)]
        now, peak = shard.memory()
        said = bench.operators.ask()
    expect(last >= settled + CYCLES, "too few cycles were run")
    expect(all(c["machines"] >= machines for c in cycles), "machines were missing in a cycle")
    expect(not said["rejected"] and not said["lost"], "a session was lost or a roll-up refused")
    expect(sum(c["changes"] + len(c["actions"]) for c in cycles) > 0, "nothing ever changed")
    unmet = [c["shortfalls"] for c in cycles]
    expect(max(unmet) <= needs * 0.05, f"{max(unmet)} needs unmet in a steady cycle")
    return {
        "cycle_ms": [c["wall_ns"] / _MS for c in cycles],
        "decision_ms": [
            sum(c["phases"][p] for p in ("normalise", "phase1", "phase2", "phase3")) / _MS
            for c in cycles
        ],
        "hello_ms": hellos,
        "memory": now,
        "peak": peak,
    }


def settle(bench: ShardBench, needs: int) -> int:
    """The cycle from which on all demand is there and nothing is left over of the start."""
    found = bench.shard.wait_cycle("with all demand", 180.0, needs=needs)
    calm = int(found["cycle"])
    while True:
        found = bench.shard.wait_cycle("after the start", 180.0, cycle=calm + 3)
        recent = bench.shard.cycles(calm)
        if all(sum(c["actions"].values()) < 500 for c in recent[-3:]):
            return int(recent[-1]["cycle"]) + 1
        calm = int(recent[-1]["cycle"])


async def _hellos(address: str) -> list[float]:
    """How long a Hello waits for its acknowledgement, session after session."""
    from bigfleet.wire.channel import open_channel
    from bigfleet_api.v1alpha1 import shard_pb2_grpc

    found = []
    channel = open_channel(address, None)
    stub: Any = shard_pb2_grpc.ShardStub(channel)
    for number in range(_HELLOS):
        call = stub.Session()
        begun = time.perf_counter()
        hello = shard_pb2.Hello(cluster_id=f"visitor-{number % 5}", protocol_version="v1alpha1")
        await call.write(shard_pb2.OperatorMessage(hello=hello))
        answer = await call.read()
        found.append((time.perf_counter() - begun) * 1e3)
        expect(answer.ack.echo == "hello", "a Hello was answered by something else")
        await call.done_writing()
        call.cancel()
        await asyncio.sleep(0.1)
    await channel.close()
    return found


def bindings(machines: int = 5_000) -> dict[str, Any]:
    """Everything at once: how many machines are bound per second, end to end."""
    wanted = make_workload("cold", machines)
    target = wanted.expected.acquired or 0
    with running("cold", machines, interval=_BEAT, churn=0.0, spread=0.2) as bench:
        begun = time.monotonic()
        first = bench.shard.cycles()[-1]["cycle"]
        deadline = begun + 120.0
        done = 0
        while time.monotonic() < deadline:
            done = bench.operators.ask()["bootstraps"]
            if done >= target:
                break
            time.sleep(0.05)
        seconds = time.monotonic() - begun
        largest = max(sum(c["actions"].values()) for c in bench.shard.cycles(first))
    expect(done >= target, f"{done} of {target} machines were bound")
    return {"per_second": done / seconds, "bound": done, "largest_cycle": largest}


def restart(machines: int = 50_000) -> dict[str, Any]:
    """kill -9, and how long until the first decision with everything restored."""
    needs = len(make_workload("gangs", machines).scenario.needs)
    with running("gangs", machines, interval=_BEAT, churn=0.0) as bench:
        shard = bench.shard
        settle(bench, needs)
        assert shard.child is not None
        shard.child.kill()
        shard.start()
        first = shard.wait_cycle("after the restart", 60.0, machines=machines)
        seconds = first["start_unix_nanos"] / 1e9 + first["wall_ns"] / 1e9 - _started_unix(shard)
        after = shard.wait_cycle("with demand after the restart", 120.0, needs=needs)
        later = shard.wait_cycle("two later", 120.0, cycle=after["cycle"] + 2)
        recent = shard.cycles(after["cycle"])
    expect(not first["actions"], f"the first cycle did {first['actions']}")
    reclaims = sum(c["actions"].get("Reclaim", 0) for c in recent)
    expect(not reclaims, f"{reclaims} reclaims after a restart at unchanged demand")
    expect(later["machines"] >= machines, "machines were lost by the restart")
    return {"seconds": seconds}


def _started_unix(shard: Any) -> float:
    return time.time() - (time.monotonic() - float(shard.started))


def many_sessions(sessions: int = 1_000, rows: int = 100) -> dict[str, Any]:
    """Many sessions at once, each rolling up on the beat: how soon a roll-up is acknowledged."""
    with running(f"sessions:{sessions}x{rows}", 5_000, interval=_BEAT) as bench:
        bench.shard.wait_cycle("with all demand", 240.0, needs=sessions * rows)
        bench.operators.ask()
        deadline = time.monotonic() + 3 * _BEAT
        while time.monotonic() < deadline:
            time.sleep(0.2)
        said = bench.operators.ask()
        now, _ = bench.shard.memory()
    expect(said["sessions"] >= sessions and not said["lost"], f"{said['lost']} sessions were lost")
    expect(not said["rejected"] and not said["held"], "a roll-up was refused or held")
    expect(len(said["acks_ms"]) >= 2 * sessions, f"{len(said['acks_ms'])} acknowledgements came")
    expect(now < 1.5e9, f"the shard holds {now / 1e9:.2f} GB")
    return {"ack_ms": said["acks_ms"], "memory": now}
