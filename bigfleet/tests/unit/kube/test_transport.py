"""One request: what is tried again, what is not, and that everything ends."""

import asyncio

import pytest

from api_server import ApiServer, api_server, dribbles, hangs, hangs_up, lists, pod, refuses, says
from bigfleet.kube import (
    ClusterConfig,
    DeadlineError,
    ForbiddenError,
    KubeClient,
    ServerError,
    UnauthorizedError,
    UnreachableError,
)
from bigfleet.kube.lease import LEASES
from bigfleet.kube.objects import PODS
from kube_clients import Counts, HastyClock, client_of

LIST = "/api/v1/pods"
ONE = "/api/v1/namespaces/ns/pods/a"


async def test_a_throttled_request_waits_as_long_as_it_was_told() -> None:
    clock = HastyClock()
    async with api_server() as api, client_of(api, clock=clock) as client:
        api.on("GET", ONE, refuses(429, "TooManyRequests", after="7"), says(pod("a", 1)))
        found = await client.get(PODS, "a", "ns")
    assert found.metadata.name == "a"
    assert 7 <= max(clock.slept) <= 7 * 1.25


async def test_throttled_writes_are_tried_again_because_nothing_was_done() -> None:
    async with api_server() as api, client_of(api) as client:
        api.on("POST", "/api/v1/namespaces/ns/pods", refuses(429, after="1"), says(pod("a", 1)))
        await client.create(PODS, {"metadata": {"name": "a"}}, "ns")
    assert len(api.seen) == 2


async def test_a_cut_read_is_repeated_and_a_cut_create_is_not() -> None:
    async with api_server() as api, client_of(api) as client:
        api.on("GET", ONE, hangs_up, hangs_up, says(pod("a", 1)))
        await client.get(PODS, "a", "ns")
        api.on("POST", "/api/v1/namespaces/ns/pods", hangs_up)
        with pytest.raises(UnreachableError, match="POST /api/v1/namespaces/ns/pods"):
            await client.create(PODS, {"metadata": {"name": "a"}}, "ns")
    assert [request.method for request in api.seen].count("POST") == 1


async def test_server_trouble_is_waited_out_for_reads_and_told_for_writes() -> None:
    async with api_server() as api, client_of(api) as client:
        api.on("GET", ONE, refuses(500, "InternalError"), refuses(503), says(pod("a", 1)))
        await client.get(PODS, "a", "ns")
        api.on("POST", "/api/v1/namespaces/ns/pods", refuses(500, "InternalError", "etcd is away"))
        with pytest.raises(ServerError, match="etcd is away"):
            await client.create(PODS, {"metadata": {"name": "a"}}, "ns")


@pytest.mark.parametrize(
    "answer", [hangs, dribbles, refuses(503)], ids=["hangs", "dribbles", "503"]
)
async def test_every_call_ends_at_its_deadline(answer: object) -> None:
    async with api_server() as api, client_of(api) as client:
        api.on("GET", ONE, answer)  # type: ignore[arg-type]
        with pytest.raises(DeadlineError, match=r"GET .*/a: no answer within 0\.2 s"):
            await client.get(PODS, "a", "ns", deadline=0.2)


async def test_a_deadline_names_the_last_trouble() -> None:
    async with api_server() as api, client_of(api) as client:
        api.on("GET", ONE, refuses(503, "ServiceUnavailable", "etcd is away"))
        with pytest.raises(DeadlineError, match="the last try said: etcd is away"):
            await client.get(PODS, "a", "ns", deadline=0.2)


async def test_no_process_at_the_address_is_unreachable_by_the_deadline() -> None:
    config = ClusterConfig("http://127.0.0.1:9")
    async with KubeClient.connect(config) as client:
        with pytest.raises(DeadlineError, match="Cannot connect"):
            await client.get(PODS, "a", "ns", deadline=0.3)


async def test_a_new_token_is_used_at_once_and_an_old_one_is_not_tried_twice() -> None:
    tokens = ["old", "new", "new", "new"]
    async with api_server() as api, client_of(api, token=lambda: tokens.pop(0)) as client:
        api.on("GET", ONE, refuses(401, "Unauthorized"), says(pod("a", 1)))
        await client.get(PODS, "a", "ns")
    sent = [request.headers["Authorization"] for request in api.seen]
    assert sent == ["Bearer old", "Bearer new"]
    async with api_server() as api, client_of(api, token=lambda: "bad") as client:
        api.on("GET", ONE, refuses(401, "Unauthorized", "token expired"))
        with pytest.raises(UnauthorizedError, match="token expired"):
            await client.get(PODS, "a", "ns")
    assert len(api.seen) == 1


async def test_refusals_keep_the_servers_words() -> None:
    said = 'pods "a" is forbidden: User "x" cannot get resource "pods"'
    async with api_server() as api, client_of(api) as client:
        api.on("GET", ONE, refuses(403, "Forbidden", said))
        with pytest.raises(ForbiddenError, match="cannot get resource") as raised:
            await client.get(PODS, "a", "ns")
    assert (raised.value.code, raised.value.reason) == (403, "Forbidden")


async def test_compressed_answers_are_read_and_asked_for() -> None:
    async with api_server() as api, client_of(api) as client:
        many = [pod(f"p{number}", number) for number in range(500)]
        document = {"metadata": {"resourceVersion": "9"}, "items": many}
        api.on("GET", LIST, says(document, compressed=True))
        found = await client.list_all(PODS)
    assert len(found) == 500
    assert "gzip" in api.seen[0].headers["Accept-Encoding"]


async def test_every_request_is_counted_by_what_came_back() -> None:
    counts = Counts()
    async with api_server() as api, client_of(api, observer=counts) as client:
        # aiohttp tries a read once more by itself when the connection is cut without an answer.
        api.on("GET", ONE, hangs_up, hangs_up, refuses(429, after="1"), refuses(404))
        api.on("GET", LIST, lists(version=1))
        with pytest.raises(Exception, match="404"):
            await client.get(PODS, "a", "ns")
        await client.list_all(PODS)
    assert counts.requests == [
        ("get", "pods", "error"),
        ("get", "pods", "429"),
        ("get", "pods", "4xx"),
        ("list", "pods", "2xx"),
    ]


async def test_the_client_keeps_its_own_rate() -> None:
    clock = HastyClock()
    async with api_server() as api:
        api.on("GET", ONE, says(pod("a", 1)))
        config = ClusterConfig(api.url)
        async with KubeClient.connect(config, qps=10, burst=5, clock=clock) as client:
            await asyncio.gather(*(client.get(PODS, "a", "ns") for _ in range(20)))
    # Five at once, the other fifteen a tenth of a second apart.
    assert len(clock.slept) == 15
    assert max(clock.slept) == pytest.approx(1.5, abs=0.3)


async def test_a_page_of_a_proxy_is_an_error_and_not_a_crash(api: ApiServer) -> None:
    async with client_of(api) as client:
        api.on("GET", ONE, refuses(404, "", "<html>not here</html>"))
        with pytest.raises(Exception, match="not here"):
            await client.get(PODS, "a", "ns")


async def test_a_lease_is_renewed_however_much_else_waits(api: ApiServer) -> None:
    clock = HastyClock()
    path = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/lock"
    api.on("GET", ONE, says(pod("a", 1)))
    api.on("GET", path, says(pod("lock", 1)))
    async with KubeClient.connect(ClusterConfig(api.url), qps=1, burst=1, clock=clock) as client:
        await asyncio.gather(*(client.get(PODS, "a", "ns") for _ in range(10)))
        waits = len(clock.slept)
        await client.get(LEASES, "lock", "ns")
    assert waits == 9
    assert len(clock.slept) == waits
