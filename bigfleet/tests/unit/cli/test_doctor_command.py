"""`bigfleet doctor`: what is fine is said to be, what is wrong comes with a remedy."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import trustme

from bigfleet import engine_warm_up
from bigfleet.cli.doctor import cluster, here
from bigfleet.cli.doctor.findings import Finding, FindingKind
from bigfleet.cli.doctor.fleet import look_at_fleet
from bigfleet.kube import NotFoundError, UnreachableError
from bigfleet.kube.errors import ApiStatus
from bigfleet.shard.server.settings import provider_site
from bigfleet.wire.tls import TlsFiles
from bigfleet_lab.fake import FakeProvider
from commandline import run


def verdicts(found: list[Finding], about: str) -> list[str]:
    return [finding.verdict.value for finding in found if finding.about == about]


def files(folder: Path) -> TlsFiles:
    """A certificate without an identity, its key and its authority."""
    authority = trustme.CA()
    leaf = authority.issue_cert("localhost")
    leaf.cert_chain_pems[0].write_to_path(folder / "cert")
    leaf.private_key_pem.write_to_path(folder / "key")
    authority.cert_pem.write_to_path(folder / "ca")
    return TlsFiles(folder / "cert", folder / "key", folder / "ca")


def test_a_machine_without_a_fleet_is_looked_at_and_nothing_is_wrong(tmp_path: Path) -> None:
    result = run("doctor", "--data-dir", str(tmp_path), "--output", "json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert {"Python", "Engine", "Data folder", "Disk", "Store", "TLS"} <= {
        f["about"] for f in found
    }


def test_what_is_wrong_is_told_with_a_remedy_and_an_exit_code(tmp_path: Path) -> None:
    words = ("doctor", "--data-dir", str(tmp_path), "--coordinator", "127.0.0.1:1", "--quiet")
    result = run(*words)
    assert result.exit_code == 1
    assert "wrong Coordinator: 127.0.0.1:1: no process listens there" in result.stdout
    assert "-> check that it runs" in result.stdout
    assert "fine" not in result.stdout


def test_half_of_the_tls_files_is_bad_input() -> None:
    result = run("doctor", "--tls-cert", "x")
    assert result.exit_code == 2
    assert "--tls-key" in result.stderr


def test_an_old_python_is_refused() -> None:
    assert here.python((3, 10, 1)).verdict is FindingKind.WRONG
    assert here.python((3, 13, 0)).verdict is FindingKind.FINE


def test_the_engine_is_looked_for_where_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_warm_up, "is_warm", lambda: True)
    assert here.engine().verdict is FindingKind.FINE
    monkeypatch.undo()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    empty = here.engine()
    assert (empty.verdict, str(tmp_path) in empty.text) == (FindingKind.NOTE, True)


def test_a_port_that_is_taken_is_worth_a_note() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        assert here.port(number, "shard").verdict is FindingKind.NOTE
    assert here.port(number, "shard").verdict is FindingKind.FINE


def test_a_store_that_is_no_store_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "coordinator.db"
    assert [f.verdict for f in here.store(path)] == [FindingKind.NOTE]
    path.touch()
    (empty,) = here.store(path)
    assert (empty.verdict, "restore" in empty.remedy) == (FindingKind.WRONG, True)
    path.write_bytes(b"this is not a database, and it is long enough to be looked at" * 40)
    (found,) = here.store(path)
    assert found.verdict is FindingKind.WRONG
    assert "restore" in found.remedy


def test_a_folder_that_is_a_file_is_passed_over_for_the_one_above(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = list(here.folder(tmp_path / "file" / "below"))
    assert verdicts(found, "Disk") == ["fine"]


def test_a_certificate_needs_one_identity(tmp_path: Path) -> None:
    none = list(here.certificates(files(tmp_path)))
    assert (verdicts(none, "TLS"), verdicts(none, "Identity")) == (["fine"], ["wrong"])


def test_files_that_do_not_belong_together_are_wrong(tmp_path: Path) -> None:
    one = files(tmp_path)
    (tmp_path / "other").mkdir()
    other = files(tmp_path / "other")
    found = list(here.certificates(TlsFiles(one.cert, other.key, one.ca)))
    assert verdicts(found, "TLS") == ["wrong"]
    missing = list(here.certificates(TlsFiles(tmp_path / "none", one.key, one.ca)))
    assert verdicts(missing, "TLS") == ["wrong"]


async def test_a_provider_that_serves_is_fine_and_one_that_is_gone_is_not() -> None:
    async with await FakeProvider.start(listen=True, seed_count=1) as fake:
        found = [f async for f in look_at_fleet([], [], [fake.site], None)]
        assert verdicts(found, f"Provider {fake.site.name}") == ["fine"]
    unknown = provider_site("127.0.0.1:1")
    gone = [f async for f in look_at_fleet([], ["127.0.0.1:1"], [unknown], None)]
    assert [f.verdict for f in gone] == [FindingKind.WRONG, FindingKind.WRONG]
    assert {f.text for f in gone} == {"127.0.0.1:1: no process listens there"}


def test_a_provider_is_named_as_to_a_shard(tmp_path: Path) -> None:
    at = ("--data-dir", str(tmp_path), "--quiet")
    result = run("doctor", *at, "--provider-addr", "fake=127.0.0.1:1@eu-1")
    assert result.exit_code == 1
    assert "wrong Provider fake: 127.0.0.1:1: no process listens there" in result.stdout


@pytest.mark.parametrize("flag", ["--coordinator", "--shard", "--provider-addr"])
def test_an_address_without_a_port_is_bad_input(flag: str) -> None:
    result = run("doctor", flag, "foo")
    assert result.exit_code == 2
    assert flag in result.stderr
    assert "host:port" in result.stderr


@pytest.mark.parametrize(
    ("major", "minor", "verdict"),
    [("1", "34", "fine"), ("1", "27+", "fine"), ("1", "20", "wrong"), ("", "", "wrong")],
)
def test_an_api_server_has_to_be_new_enough(major: str, minor: str, verdict: str) -> None:
    assert cluster.version({"major": major, "minor": minor}).verdict.value == verdict


class OneCluster:
    """An API server that knows some kinds and allows some verbs."""

    def __init__(self, kinds: tuple[str, ...], verbs: tuple[str, ...]) -> None:
        self._kinds, self._verbs = kinds, verbs

    async def read_path(self, path: str) -> bytes:
        if not self._kinds:
            raise NotFoundError(ApiStatus(code=404, message="the server could not find it"))
        return json.dumps({"resources": [{"name": kind} for kind in self._kinds]}).encode()

    async def create(self, _resource: object, body: dict[str, Any]) -> dict[str, Any]:
        verb = body["spec"]["resourceAttributes"]["verb"]
        return {"status": {"allowed": verb in self._verbs}}


async def test_missing_kinds_and_missing_rights_are_named() -> None:
    client: Any = OneCluster(("capacityrequests",), ("list",))
    kinds = await cluster.kinds(client)
    assert kinds.verdict is FindingKind.WRONG
    assert "upcomingnodes, availablecapacities missing" in kinds.text
    bare: Any = OneCluster((), ())
    assert (await cluster.kinds(bare)).verdict is FindingKind.WRONG
    whole: Any = OneCluster(cluster.KINDS, ())
    assert (await cluster.kinds(whole)).verdict is FindingKind.FINE
    assert (await cluster.right(client, "", "pods", "list")).verdict is FindingKind.FINE
    refused = await cluster.right(client, "", "pods/eviction", "create")
    assert (refused.verdict, refused.text) == (FindingKind.WRONG, "may not create pods/eviction")


async def test_a_cluster_that_cannot_be_found_is_wrong(tmp_path: Path) -> None:
    found = [f async for f in cluster.look_at_cluster(str(tmp_path / "none"), "")]
    assert [f.verdict for f in found] == [FindingKind.WRONG]


def test_wrong_certificates_keep_no_other_look_from_being_taken(tmp_path: Path) -> None:
    lost = [word for flag in ("--tls-cert", "--tls-key", "--tls-ca") for word in (flag, "nowhere")]
    words = ("--data-dir", str(tmp_path), "--kubeconfig", str(tmp_path / "none"), *lost)
    result = run("doctor", *words, "--quiet", "--output", "json")
    assert [each["about"] for each in json.loads(result.stdout)] == ["TLS", "Cluster"]


@pytest.mark.parametrize("answer", ["", "[]", '{"resources": [5]}', UnreachableError("reset")])
async def test_an_api_server_that_breaks_off_is_told(answer: str | Exception) -> None:
    class Broken:
        async def read_path(self, _path: str) -> bytes:
            if isinstance(answer, Exception):
                raise answer
            return answer.encode()

    client: Any = Broken()
    assert (await cluster.kinds(client)).verdict is FindingKind.WRONG
