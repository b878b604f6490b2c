"""The tiny cloud over real HTTP: what a provider meets, and what a test can order."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from bigfleet_fakecloud import (
    Cloud,
    Effect,
    Moment,
    RealClock,
    Rule,
    ScriptError,
    VirtualClock,
    serving,
)
from bigfleet_fakecloud.examples.tiny import tiny

ORDER = {"type": "small", "zone": "a"}


@pytest.fixture
def cloud() -> Cloud:
    return tiny(clock=VirtualClock())


@pytest.fixture
def http(cloud: Cloud) -> Iterator[httpx.Client]:
    with serving(cloud) as url, httpx.Client(base_url=url, timeout=10) as client:
        yield client


def make(http: httpx.Client, **more: object) -> str:
    reply = http.post("/hosts", json={**ORDER, **more})
    assert reply.status_code == 201, reply.text
    return str(reply.json()["id"])


def state(http: httpx.Client, ref: str) -> str:
    return str(http.get(f"/hosts/{ref}").json()["state"])


def code(reply: httpx.Response) -> str:
    return str(reply.json()["error"]["code"])


def eventually(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < ends, "the condition did not come true within 10 s"
        threading.Event().wait(0.005)


def test_a_host_starts_stops_and_ends(cloud: Cloud, http: httpx.Client) -> None:
    ref = make(http)
    assert state(http, ref) == "starting"
    cloud.advance(3)
    assert state(http, ref) == "running"
    assert http.post(f"/hosts/{ref}/stop").json()["state"] == "stopping"
    cloud.advance(1)
    assert state(http, ref) == "stopped"
    assert http.delete(f"/hosts/{ref}").status_code == 202
    cloud.advance(1)
    assert state(http, ref) == "ended"
    cloud.advance(60)
    assert http.get(f"/hosts/{ref}").status_code == 404


def test_a_repeat_with_the_same_token_makes_no_second_host(http: httpx.Client) -> None:
    assert make(http, token="t") == make(http, token="t")
    assert code(http.post("/hosts", json={**ORDER, "zone": "b", "token": "t"})) == "token_reused"
    assert len(http.get("/hosts").json()["hosts"]) == 1


def test_a_stock_out_is_of_one_type_in_one_zone_and_ends_with_a_deletion(
    cloud: Cloud, http: httpx.Client
) -> None:
    http.put("/_control/stock", json={"key": ["small", "a"], "limit": 1}).raise_for_status()
    ref = make(http)
    assert code(http.post("/hosts", json=ORDER)) == "out_of_stock"
    make(http, zone="b")
    http.delete(f"/hosts/{ref}")
    assert code(http.post("/hosts", json=ORDER)) == "out_of_stock"
    cloud.advance(1)
    make(http)


def test_a_quota_counts_what_hosts_are_made_of(http: httpx.Client) -> None:
    http.put("/_control/quota", json={"key": ["cpus"], "limit": 17}).raise_for_status()
    make(http, type="large")
    assert code(http.post("/hosts", json=ORDER)) == "quota_exceeded"


def test_too_many_calls_are_told_when_to_come_again(cloud: Cloud, http: httpx.Client) -> None:
    http.put("/_control/throttle", json={"op": "ListHosts", "rate": 0.1, "burst": 2})
    assert [http.get("/hosts").status_code for _ in range(3)] == [200, 200, 429]
    assert http.get("/hosts").headers["Retry-After"] == "10"
    assert http.get("/prices").status_code == 200
    cloud.advance(10)
    assert http.get("/hosts").status_code == 200


def test_a_list_lags_behind_a_write(cloud: Cloud, http: httpx.Client) -> None:
    http.patch("/_control/delays", json={"lag_list": 5}).raise_for_status()
    ref = make(http)
    assert http.get("/hosts").json()["hosts"] == []
    assert state(http, ref) == "starting"
    cloud.advance(5)
    assert [host["id"] for host in http.get("/hosts").json()["hosts"]] == [ref]


def test_hosts_are_listed_by_tag_in_pages(http: httpx.Client) -> None:
    mine = {make(http, tags={"who": "us"}) for _ in range(5)}
    make(http, tags={"who": "others"})
    seen: list[str] = []
    query = {"tag": "who=us", "limit": "2"}
    while True:
        reply = http.get("/hosts", params=query).json()
        seen += [host["id"] for host in reply["hosts"]]
        if reply["next"] is None:
            break
        query["cursor"] = reply["next"]
    assert sorted(seen) == sorted(mine)
    assert http.get("/hosts", params={"cursor": "junk!"}).status_code == 400
    assert http.get("/hosts", params={"limit": "0"}).status_code == 400
    assert http.get("/hosts", params={"limit": "many"}).status_code == 400


def test_an_operation_is_polled_to_its_end(cloud: Cloud, http: httpx.Client) -> None:
    ref = make(http)
    operation = http.post(f"/hosts/{ref}/resize", json={"type": "large"}).json()["id"]
    cloud.advance(2)
    assert http.get(f"/operations/{operation}").json()["progress"] == 50
    assert http.get(f"/hosts/{ref}").json()["type"] == "small"
    cloud.advance(2)
    assert http.get(f"/operations/{operation}").json()["done"] is True
    assert http.get(f"/hosts/{ref}").json()["type"] == "large"


def test_an_operation_fails_after_its_call_succeeded(cloud: Cloud, http: httpx.Client) -> None:
    ref = make(http)
    rule = {"op": "ResizeHost", "moment": "operation", "code": "broken"}
    http.post("/_control/faults", json=rule).raise_for_status()
    reply = http.post(f"/hosts/{ref}/resize", json={"type": "large"})
    assert reply.status_code == 202
    cloud.advance(4)
    ended = http.get(f"/operations/{reply.json()['id']}").json()
    assert ended["error"]["code"] == "broken"
    assert http.get(f"/hosts/{ref}").json()["type"] == "small"


def test_hosts_are_stopped_preempted_untagged_and_deleted_from_outside(
    cloud: Cloud, http: httpx.Client
) -> None:
    refs = [make(http, tags={"who": "us"}) for _ in range(4)]
    cloud.advance(3)
    for ref, event in zip(refs, ["stop", "preempt", "untag", "delete"], strict=True):
        http.post(f"/_control/resources/hosts/{ref}/{event}").raise_for_status()
    assert [state(http, ref) for ref in refs[:3]] == ["stopped", "ended", "running"]
    assert http.get(f"/hosts/{refs[2]}").json()["tags"] == {}
    assert http.get(f"/hosts/{refs[3]}").status_code == 404
    assert cloud.quota.held(("cpus",)) == 4


@pytest.mark.parametrize(("moment", "hosts"), [("before", 0), ("after", 1)])
def test_a_lost_answer_leaves_nothing_or_everything(
    http: httpx.Client, moment: str, hosts: int
) -> None:
    rule = {"op": "CreateHost", "moment": moment, "effect": "drop"}
    number = http.post("/_control/faults", json=rule).json()["number"]
    with pytest.raises(httpx.RemoteProtocolError, match="without sending"):
        http.post("/hosts", json={**ORDER, "token": "t"})
    assert http.get("/_control/state").json()["resources"]["hosts"] == hosts
    assert http.get(f"/_control/faults/{number}").json() == {"fired": 1}
    make(http, token="t")
    assert http.get("/_control/state").json()["resources"]["hosts"] == 1
    calls = http.get("/_control/calls", params={"op": "CreateHost"}).json()["calls"]
    assert [call["status"] for call in calls] == [0, 201]


def test_an_error_after_success_is_an_error_that_left_a_host(http: httpx.Client) -> None:
    rule = {"op": "CreateHost", "moment": "after", "status": 503, "code": "oops", "retry_after": 3}
    http.post("/_control/faults", json=rule)
    reply = http.post("/hosts", json=ORDER)
    assert (reply.status_code, code(reply), reply.headers["Retry-After"]) == (503, "oops", "3")
    assert len(http.get("/hosts").json()["hosts"]) == 1


def test_a_hook_is_called_at_its_moment(cloud: Cloud, http: httpx.Client) -> None:
    seen: list[int] = []
    for moment in (Moment.BEFORE, Moment.AFTER):
        cloud.faults.add(
            Rule("CreateHost", moment, Effect.HOOK,
                 hook=lambda: seen.append(len(cloud.collections["hosts"].everything())))
        )  # fmt: skip
    make(http)
    assert seen == [0, 1]


def test_rules_can_be_taken_back(http: httpx.Client) -> None:
    http.post("/_control/faults", json={"times": None})
    assert http.get("/prices").status_code == 500
    http.delete("/_control/faults").raise_for_status()
    assert http.get("/prices").status_code == 200


def test_a_slow_call_waits_for_virtual_time(cloud: Cloud, http: httpx.Client) -> None:
    clock = cloud.timeline.clock
    assert isinstance(clock, VirtualClock)
    http.patch("/_control/delays", json={"latency": 30}).raise_for_status()
    replies: list[int] = []
    caller = threading.Thread(target=lambda: replies.append(http.get("/prices").status_code))
    caller.start()
    eventually(lambda: clock.waiting == 1)
    assert replies == []
    http.post("/_control/advance", json={"seconds": 30}).raise_for_status()
    caller.join(10)
    assert replies == [200]


def test_what_the_cloud_does_not_offer_is_refused_and_remembered(
    cloud: Cloud, http: httpx.Client
) -> None:
    assert http.get("/unknown").status_code == 404
    assert http.post("/hosts", json={**ORDER, "colour": "red"}).status_code == 400
    assert http.post("/hosts", content=b"{").status_code == 400
    assert http.post("/hosts", json={**ORDER, "type": "huge"}).status_code == 400
    assert http.post("/hosts", json={**ORDER, "tags": {"n": 1}}).status_code == 400
    assert [seen.path for seen in cloud.refused] == ["/unknown"]


def test_the_same_seed_gives_the_same_story() -> None:
    def story(seed: int) -> list[tuple[str, float]]:
        cloud = tiny(seed, VirtualClock())
        with serving(cloud) as url, httpx.Client(base_url=url) as http:
            refs = [make(http) for _ in range(5)]
        cloud.advance(5)
        found = [cloud.collections["hosts"].truth(ref) for ref in refs]
        return [(host.ref, host.changed) for host in found if host]

    assert story(3) == story(3)
    assert story(3) != story(4)


def test_real_time_passes_by_itself() -> None:
    cloud = tiny(clock=RealClock())
    cloud.delays.turn({"transition": 0.05})
    with serving(cloud) as url, httpx.Client(base_url=url) as http:
        ref = make(http)
        eventually(lambda: state(http, ref) == "running")
        assert http.post("/_control/advance", json={"seconds": 1}).status_code == 400
    with pytest.raises(ScriptError, match="VirtualClock"):
        cloud.advance(1)


def test_many_callers_at_once_lose_and_double_nothing(cloud: Cloud, http: httpx.Client) -> None:
    cloud.stock.limit(("small", "a"), 30)
    cloud.faults.add(Rule("CreateHost", Moment.AFTER, Effect.DROP, chance=0.2, times=None))

    def caller(name: int) -> None:
        for number in range(10):
            for _ in range(20):
                try:
                    http.post("/hosts", json={**ORDER, "token": f"{name}-{number}"})
                except httpx.RemoteProtocolError:
                    continue
                break

    threads = [threading.Thread(target=caller, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(cloud.collections["hosts"].everything()) == 30
    assert cloud.stock.held(("small", "a")) == 30


def test_the_cloud_runs_as_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "bigfleet_fakecloud.examples.tiny"]
    wrong = subprocess.run([*command, "--addr=9090"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "host:port" in wrong.stderr
    with serving(tiny()) as url:
        port = url.rpartition(":")[2]
    process = subprocess.Popen([*command, f"--addr=127.0.0.1:{port}", "--latency-ms=0"])
    try:
        with httpx.Client(base_url=url) as http:

            def answers() -> bool:
                try:
                    return http.get("/prices").status_code == 200
                except httpx.ConnectError:
                    return False

            eventually(answers)
            assert state(http, make(http)) == "running"
    finally:
        process.terminate()
        assert process.wait(10) in (0, -15)
