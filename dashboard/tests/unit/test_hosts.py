"""Host names: a page of another site that rebinds its name gets nothing, whatever it sends."""

import json
from pathlib import Path

import pytest

from asking import browser_of
from bigfleet_dashboard.config import Auth, Config
from bigfleet_dashboard.errors import ConfigError, MisdirectedError
from bigfleet_dashboard.hosts import AllowedHosts
from worlds_of_machines import fleet_of, machine

FOREIGN = "evil.example:8700"
PATHS = (
    "/",
    "/needs",
    "/static/js/main.js",
    "/api/v1",
    "/api/v1/overview",
    "/api/v1/events",
    "/api/v1/whatif",
    "/api/v1/demo",
    "/api/nothing",
    "/healthz",
    "/readyz",
)


@pytest.mark.parametrize("path", PATHS)
async def test_a_rebound_name_reads_nothing(path: str) -> None:
    async with browser_of(fleet_of([machine("m-1")])) as browser:
        answer = await browser.get(path, headers={"Host": FOREIGN})
    assert answer.status_code == 421
    assert list(answer.json()) == ["error"]
    assert "'evil.example:8700'" in answer.json()["error"]
    assert "--allowed-host evil.example " in answer.json()["error"]
    assert "m-1" not in answer.text


@pytest.mark.parametrize("path", ["/api/v1/whatif", "/api/v1/demo"])
async def test_a_rebound_name_changes_nothing(path: str, tmp_path: Path) -> None:
    # Everything but the name is as the page itself sends it.
    headers = {"Host": FOREIGN, "Origin": f"http://{FOREIGN}"}
    async with browser_of(fleet_of(), demo_socket=tmp_path / "demo.sock") as browser:
        answer = await browser.post(path, json={"name": "saturate"}, headers=headers)
    assert answer.status_code == 421


async def test_a_forwarded_name_opens_nothing_by_itself() -> None:
    async with browser_of(fleet_of()) as browser:
        for headers in (
            {"Host": FOREIGN, "X-Forwarded-Host": "localhost"},
            {"X-Forwarded-Host": FOREIGN},
            {"X-Forwarded-Host": f"localhost, {FOREIGN}"},
        ):
            assert (await browser.get("/api/v1/overview", headers=headers)).status_code == 421


async def test_behind_a_proxy_the_name_that_people_use_is_configured() -> None:
    auth = Auth.of("X-Forwarded-User", ())
    async with browser_of(fleet_of(), auth, allowed=("fleet.example.org",)) as browser:
        for headers in (
            {"Host": "fleet.example.org"},
            {"X-Forwarded-Host": "fleet.example.org", "Origin": "https://fleet.example.org"},
        ):
            sent = {"X-Forwarded-User": "ada", **headers}
            assert (await browser.get("/api/v1/overview", headers=sent)).status_code == 200
            answer = await browser.post("/api/v1/whatif", json={"shard": "none"}, headers=sent)
            assert answer.json() == {"error": "there is no shard 'none': there are s-1"}


async def test_a_request_without_a_host_is_refused() -> None:
    async with browser_of(fleet_of()) as browser:
        for given in (b"", b" "):
            answer = await browser.get("/api/v1/overview", headers={b"host": given})
            assert answer.status_code == 421
    with pytest.raises(MisdirectedError, match="this request has 0"):
        AllowedHosts("127.0.0.1").check([], [], "127.0.0.1")
    with pytest.raises(MisdirectedError, match="this request has 2"):
        AllowedHosts("127.0.0.1").check(["localhost", "evil.example"], [], "127.0.0.1")


LOOPBACK = ("localhost", "LOCALHOST:8700", "localhost.", "127.0.0.1", "127.9.8.7:1", "[::1]:8700",
            "[0:0::1]", "[::ffff:127.0.0.1]:80")  # fmt: skip
NEVER = ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.1",
         "evil.example:127.0.0.1", "2130706433", "localhost:x", "[::1", "localhost/", "[]",
         "user@localhost", "a b", "xn--lcalhost-l9a", "локальный", "127.0.0.1%00",
         "x" * 300)  # fmt: skip


@pytest.mark.parametrize(
    ("listen", "names", "arrived_at", "allowed", "refused"),
    [
        ("127.0.0.1", (), "127.0.0.1", LOOPBACK, ("10.0.0.5", "0.0.0.0")),
        ("10.0.0.5", (), "10.0.0.5", (*LOOPBACK, "10.0.0.5:8700"), ("10.0.0.6", "0.0.0.0")),
        ("c-1.example.org", (), "10.0.0.5", ("C-1.example.org:1", "10.0.0.5"), ("example.org",)),
        ("0.0.0.0", (), "10.0.0.5", (*LOOPBACK, "10.0.0.5", "0.0.0.0:80"), ("10.0.0.6", "c-1")),
        ("::", (), "::ffff:10.0.0.5", (*LOOPBACK, "10.0.0.5", "[::]", "0.0.0.0"), ("10.0.0.6",)),
        ("::", (), "fd00::5", (*LOOPBACK, "[FD00:0::5]:8700"), ("[fd00::6]",)),
        ("0.0.0.0", ("Fleet.example.org", "192.0.2.9"), "", ("fleet.EXAMPLE.org:443", "192.0.2.9"),
         ("x.fleet.example.org", "example.org", "192.0.2.8")),
    ],
)  # fmt: skip
def test_a_dashboard_answers_to_its_own_names_and_configured_ones(
    listen: str,
    names: tuple[str, ...],
    arrived_at: str,
    allowed: tuple[str, ...],
    refused: tuple[str, ...],
) -> None:
    hosts = AllowedHosts(listen, names)
    for host in allowed:
        hosts.check([host], [], arrived_at)
    for host in (*refused, *NEVER):
        with pytest.raises(MisdirectedError, match="does not answer"):
            hosts.check([host], [], arrived_at)


@pytest.mark.parametrize(
    "name", ["http://x", "x:8700", "*", "*.example.org", "", " ", "0.0.0.0", "::", "a..b", "-a"]
)
def test_an_allowed_host_that_is_not_one_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(ConfigError, match="--allowed-host"):
        Config(coordinators=("127.0.0.1:1",), allowed_hosts=(name,))


@pytest.mark.parametrize("path", ["/api/v1/whatif", "/api/v1/demo"])
@pytest.mark.parametrize("depth", [10, 500, 990, 5_000, 30_000])
@pytest.mark.parametrize("ends", ["[]", '{"x":}'])
async def test_a_deeply_nested_body_is_refused(
    path: str, depth: int, ends: str, tmp_path: Path
) -> None:
    opens, closes = (ends[:-1], ends[-1:]) if depth < 10_000 else ("[", "]")
    nested = opens * depth + "1" + closes * depth
    async with browser_of(fleet_of(), demo_socket=tmp_path / "demo.sock") as browser:
        for body in (nested, f'{{"changes": {nested}}}', f'{{"shard": "s-1", "name": {nested}}}'):
            sent = {"Content-Type": "application/json"}
            answer = await browser.post(path, content=body, headers=sent)
            assert answer.status_code == 400
            assert list(answer.json()) == ["error"]


async def test_every_body_that_is_not_a_request_answers_400(tmp_path: Path) -> None:
    bodies = ["", "nul", "NaN", "1e999", '{"name": 1e999}', "9" * 5_000, '"\\ud800"',
              '{"\\ud800": 1}', '{"changes": [{"kind": "\\ud800"}]}', '{"changes": [[[[1]]]]}',
              json.dumps({"changes": [{"kind": "demand", "factor": 10**400}]})]  # fmt: skip
    async with browser_of(fleet_of(), demo_socket=tmp_path / "demo.sock") as browser:
        for body in (*(text.encode() for text in bodies), b"\xff\xfe", b"\x00"):
            sent = {"Content-Type": "application/json"}
            answer = await browser.post("/api/v1/whatif", content=body, headers=sent)
            assert (answer.status_code, body) == (400, body)
