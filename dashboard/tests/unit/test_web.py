"""The API and the page: what is answered, to whom, and how it is refused."""

import re

import pytest

from asking import browser_of
from bigfleet_dashboard.config import Auth, Config, Tls, split_address
from bigfleet_dashboard.errors import ConfigError
from bigfleet_dashboard.state.pages import read_scrape
from bigfleet_dashboard.state.source_health import FAILING
from bigfleet_dashboard.web.api import QUERIES
from bigfleet_dashboard.web.app import SCREENS, static_files
from worlds_of_machines import CONFIGURED, FAILED, SPECULATIVE, fleet_of, machine, need

FLEET = (
    [
        machine("m-1", CONFIGURED, cluster="atlas"),
        machine("m-2", SPECULATIVE, zone="b"),
        machine("m-3", FAILED),
    ],
    [need("atlas", 1_000_000, reason=1), need("borealis", 5)],
    ["atlas"],
)
PATHS = (
    "",
    "/overview",
    "/history",
    "/map",
    "/machines",
    "/shards",
    "/shards/s-1",
    "/clusters",
    "/clusters/atlas",
    "/needs",
    "/decisions",
    "/topology",
    "/providers",
    "/cost",
    "/sources",
    "/whatif",
)


@pytest.mark.parametrize("path", PATHS)
async def test_every_address_answers_also_while_nothing_is_known(path: str) -> None:
    async with browser_of(fleet_of(*FLEET)) as browser:
        assert (await browser.get(f"/api/v1{path}")).status_code == 200
    if "/" not in path[1:]:
        from bigfleet_dashboard.state.fleet import Fleet

        async with browser_of(Fleet()) as browser:
            assert (await browser.get(f"/api/v1{path}")).status_code == 200


async def test_the_overview_counts_what_there_is() -> None:
    async with browser_of(fleet_of(*FLEET)) as browser:
        told = (await browser.get("/api/v1/overview")).json()
    assert told["machines"]["by_state"]["Configured"] == 1
    assert told["unmet_by_priority"] == {"critical": 1, "service": 0, "batch": 0, "other": 0}
    assert told["clusters"] == {"total": 2, "connected": 1}
    assert told["problems"][0]["weight"] == "error"


async def test_who_has_the_newest_answer_is_not_sent_it_again() -> None:
    async with browser_of(fleet_of(*FLEET)) as browser:
        first = await browser.get("/api/v1/needs")
        again = await browser.get("/api/v1/needs", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_large_answers_are_compressed_for_those_who_can_read_it() -> None:
    async with browser_of(fleet_of([machine(f"m-{n}") for n in range(100)])) as browser:
        packed = await browser.get("/api/v1/machines", headers={"Accept-Encoding": "gzip"})
        plain = await browser.get("/api/v1/machines", headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.json() == plain.json()


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/nothing", 404, "see /api/v1"),
        ("/shards/s-9", 404, "no shard 's-9'"),
        ("/clusters/unknown", 404, "no cluster"),
        ("/needs/0000", 404, "gone"),
        ("/machines/unknown", 404, "no machine"),
        ("/machines/@99", 404, "no machine"),
        ("/machines?state=Sleepy", 400, "use one of Speculative"),
        ("/machines?limit=5000", 400, "whole number from 0 to 1000"),
        ("/needs?offset=-1", 400, "whole number"),
        ("/needs?verdict=perhaps", 400, "use one of met, unmet"),
        ("/needs?class=urgent", 400, "use one of critical, service, batch, other"),
        ("/needs?sort=colour", 400, "use one of"),
        ("/needs?q=" + "x" * 300, 400, "longer than 253"),
        ("/demo", 404, "not a demo"),
        (
            "/machines?zoen=nope",
            400,
            "'zoen' is not a parameter of this address: use state, cluster",
        ),
        (
            "/overview?shard=s-1",
            400,
            "'shard' is not a parameter of this address: this address takes",
        ),
        ("/shards/s-1?full=1", 400, "'full' is not a parameter"),
    ],
)
async def test_a_refusal_is_an_error_with_words(path: str, status: int, words: str) -> None:
    async with browser_of(fleet_of(*FLEET)) as browser:
        answer = await browser.get(f"/api/v1{path}")
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]
    assert words in answer.json()["error"]


async def test_every_parameter_that_is_named_is_taken() -> None:
    async with browser_of(fleet_of(*FLEET)) as browser:
        for path, names in QUERIES.items():
            for name in names:
                assert (await browser.get(f"/api/v1{path}?{name}=")).status_code == 200


async def test_lists_are_filtered_and_cut_into_pages() -> None:
    machines = [machine(f"m-{n:03d}", zone="ab"[n % 2]) for n in range(20)]
    async with browser_of(fleet_of(machines)) as browser:
        page = (await browser.get("/api/v1/machines?zone=b&offset=8&limit=5")).json()
        found = (await browser.get("/api/v1/machines?q=m-013")).json()
        none = (await browser.get("/api/v1/machines?cluster=unknown")).json()
    assert (page["total"], [m["id"] for m in page["machines"]]) == (10, ["m-017", "m-019"])
    assert found["total"] == 1
    assert none["total"] == 0


async def test_nothing_can_be_written() -> None:
    async with browser_of(fleet_of(*FLEET)) as browser:
        for path in PATHS[:-1]:
            answer = await browser.post(f"/api/v1{path}", json={})
            assert answer.status_code == 405
            assert "error" in answer.json()


async def test_every_screen_is_the_page_and_any_other_address_is_not_found() -> None:
    async with browser_of(fleet_of(*FLEET)) as browser:
        for screen in sorted(SCREENS):
            answer = await browser.get(f"/{screen}")
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/html")
        assert (await browser.get("/nowhere")).status_code == 404


async def test_the_page_loads_nothing_from_elsewhere_and_says_so_to_the_browser() -> None:
    async with browser_of(fleet_of(*FLEET)) as browser:
        answer = await browser.get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for path, file in static_files().items():
        if not path.startswith("vendor/"):
            addresses = re.findall(rb"https?://[^\s\"')]+", file.body)
            assert set(addresses) <= {b"http://www.w3.org/2000/svg"}, path


def brightness(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    ("ink", "paper"),
    [
        *(
            (ink, paper)
            for ink in ("text", "muted", "faint", "accent")
            for paper in ("bg", "panel")
        ),
        *((ink, f"{ink}-soft") for ink in ("accent", "good", "warn", "bad")),
        *((ink, "panel") for ink in ("good", "warn", "bad")),
        ("on-accent", "accent"),
    ],
)
def test_every_text_can_be_read_in_both_themes(ink: str, paper: str, dark: bool) -> None:
    sheet = static_files()["css/tokens.css"].body.decode()
    themes = re.split(r"@media|:root\[data-theme=\"dark\"\] \{", sheet)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", themes[0]))
    if dark:
        colours |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", themes[-1]))
    light, deep = sorted((brightness(colours[ink]), brightness(colours[paper])), reverse=True)
    assert (light + 0.05) / (deep + 0.05) >= 4.5


async def test_what_a_fleet_says_cannot_end_the_data_inside_the_page() -> None:
    fleet = fleet_of(*FLEET)
    fleet.sources.tell("evil", FAILING, "</script><script>alert(1)</script>")
    async with browser_of(fleet) as browser:
        page = (await browser.get("/")).text
    assert "</script><script>alert" not in page


async def test_static_files_are_compressed_and_have_a_tag() -> None:
    async with browser_of(fleet_of()) as browser:
        first = await browser.get("/static/js/main.js")
        again = await browser.get(
            "/static/js/main.js", headers={"If-None-Match": first.headers["etag"]}
        )
        for path in ("nothing.js", "index.html", "../errors.py"):
            assert (await browser.get(f"/static/{path}")).status_code == 404
    assert first.headers["content-encoding"] == "gzip"
    assert again.status_code == 304


async def test_a_caller_that_the_proxy_did_not_name_sees_nothing_but_the_probes() -> None:
    auth = Auth.of("X-Forwarded-User", ())
    async with browser_of(fleet_of(*FLEET), auth) as browser:
        assert (await browser.get("/api/v1/overview")).status_code == 401
        assert (await browser.get("/healthz")).status_code == 200
        named = await browser.get("/", headers={"X-Forwarded-User": "ada"})
    assert '"user": "ada"' in named.text


async def test_the_header_is_believed_from_the_proxys_network_alone() -> None:
    auth = Auth.of("X-Forwarded-User", ("10.0.0.0/8",))
    for peer, status in (("10.1.2.3", 200), ("192.0.2.1", 403)):
        async with browser_of(fleet_of(*FLEET), auth, peer) as browser:
            answer = await browser.get("/api/v1/overview", headers={"X-Forwarded-User": "ada"})
            assert answer.status_code == status


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://elsewhere"}, {"Content-Type": "text/plain"}, {"Origin": "null"}]
)
async def test_a_page_of_another_clients_cannot_ask_for_anything(headers: dict[str, str]) -> None:
    async with browser_of(fleet_of(*FLEET)) as browser:
        sent = {"Content-Type": "application/json", **headers}
        answer = await browser.post("/api/v1/whatif", content=b"{}", headers=sent)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"nonsense", "not JSON"),
        (b"[]", "not an object"),
        (b'{"changes": 5}', "give a list"),
        (b'{"shard": "s-1", "changes": [{"kind": "magic"}]}', "is unknown"),
        (b'{"shard": "s-1", "changes": [{"kind": "demand", "factor": -1}]}', "number from 0"),
        (
            b'{"shard": "s-1", "changes": [{"kind": "lose", "share": 0.5, "colour": "x"}]}',
            "not part",
        ),
        (
            b'{"shard": "s-1", "changes": [{"kind": "price", "factor": 2, "capacity_type": "x"}]}',
            "unknown",
        ),
        (b'{"shard": "s-1", "changes": [{"kind": "add", "count": 1.5}]}', "not a whole number"),
        (
            b'{"shard": "s-1", "changes": [{"kind": "lose", "share": 1, "zone": "nope"}]}',
            "changes[0].zone: 'nope' is unknown: use a, b",
        ),
        (
            b'{"shard": "s-1", "changes": [{"kind": "demand", "factor": 2, "cluster": "typo"}]}',
            "changes[0].cluster: 'typo' is unknown: use atlas, borealis",
        ),
        (
            b'{"shard": "s-1", "changes": [{"kind": "add", "count": 1, "instance_type": "x"}]}',
            "changes[0].instance_type: 'x' is unknown",
        ),
        (b'{"shrad": "s-1", "changes": []}', "'shrad' is not part of this request: use shard"),
        (b'{"x": "' + b"y" * 70_000 + b'"}', "larger than"),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused(body: bytes, words: str) -> None:
    async with browser_of(fleet_of(*FLEET)) as browser:
        sent = {"Content-Type": "application/json"}
        answer = await browser.post("/api/v1/whatif", content=body, headers=sent)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


async def test_it_is_ready_when_a_source_has_answered() -> None:
    from bigfleet_dashboard.state.fleet import Fleet

    for fleet, status in ((Fleet(), 503), (fleet_of(), 200)):
        async with browser_of(fleet) as browser:
            assert (await browser.get("/readyz")).status_code == status


def test_what_it_is_told_must_make_sense() -> None:
    with pytest.raises(ConfigError, match="--coordinator"):
        Config()
    with pytest.raises(ConfigError, match="--tls-key and --tls-ca"):
        Tls.of("cert", "", "")
    with pytest.raises(ConfigError, match="--auth-proxy"):
        Auth.of("x", ("nonsense",))
    with pytest.raises(ConfigError, match="not an address"):
        split_address("8700", "--listen")
    assert split_address(":8700", "--listen") == ("0.0.0.0", 8700)


async def test_of_a_silent_shard_no_cluster_is_called_connected_and_ages_go_on() -> None:
    fleet = fleet_of(*FLEET)
    shard = fleet.shards["s-1"]
    page = 'bigfleet_shard_rollup_age_seconds{stat="max"} 2\n'
    shard.scrape = read_scrape(page, at_seconds=fleet.clock() - 40.0)
    async with browser_of(fleet) as browser:
        before = (await browser.get("/api/v1/clusters/atlas")).json()
        shard.failed("it hangs", fleet.clock())
        overview = (await browser.get("/api/v1/overview")).json()
        after = (await browser.get("/api/v1/clusters/atlas")).json()
        silent = (await browser.get("/api/v1/shards/s-1")).json()
    assert (before["connected"], before["acknowledgement_lag_seconds"]) == (True, 42.0)
    assert (after["connected"], after["acknowledgement_lag_seconds"]) == (False, None)
    assert overview["clusters"] == {"total": 2, "connected": 0}
    assert silent["rollup_age_seconds"]["max"] == 42.0
