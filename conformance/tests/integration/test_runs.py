"""Whole runs on the reference provider: targets, executables, profiles, and what goes wrong."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance import ClientTls, Options, Status, Target, Verdict, run
from bigfleet_conformance.errors import BootError, UnreachableError, UsageError
from bigfleet_conformance.harness.certificates import Authority
from bigfleet_conformance.harness.link import ChannelLink
from bigfleet_conformance.registry import LaneName
from bigfleet_conformance.report.files import write
from bigfleet_conformance.report.verify import complaints
from bigfleet_conformance.runner.execute import Silent
from bigfleet_conformance.runner.process import Executable
from bigfleet_conformance.runner.source import BootPlan, TlsPaths
from reference.config import Config
from reference.inprocess import InProcess
from reference.provider import Provider
from reference.server import Server

QUICK_PACE = Options(settle_s=5.0, soak_s=1.0, scale_seed=300, large_seed=300, port=0)


class Spoken(Silent):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


async def test_a_target_is_certified_and_left_as_it_was(
    reference_address: str, tmp_path: Path
) -> None:
    spoken = Spoken()
    report = await run(Target(address=reference_address), QUICK_PACE, spoken)
    assert report.verdict is Verdict.CERTIFIED
    assert report.document["limits"]
    assert report.status("B2001") is Status.SKIPPED
    assert spoken.lines[0].startswith("probe: 268 machines; offers Delete")
    link = ChannelLink(reference_address)
    machines = (await link.stub().List(pb.ListFilter())).machines
    await link.close()
    assert {machine.state for machine in machines} == {pb.MACHINE_STATE_SPECULATIVE}
    write(report.document, tmp_path)
    assert complaints(tmp_path) == []


async def test_a_target_can_be_tested_twice(reference_address: str) -> None:
    options = replace(QUICK_PACE, only=("B30*",))
    for _ in range(2):
        report = await run(Target(address=reference_address), options)
        assert report.verdict is Verdict.INCOMPLETE
        assert report.exit_code == 0


async def test_owned_hardware_is_certified_without_delete() -> None:
    target = Target(source=InProcess(offers_delete=False))
    options = replace(QUICK_PACE, profiles=("core", "bare-metal"))
    report = await run(target, options)
    assert report.verdict is Verdict.CERTIFIED
    skipped = {row["id"] for row in report.with_status(Status.SKIPPED)}
    assert skipped == {"B109", "B2035", "B409", "B807"}


async def test_owned_hardware_that_failed_answers_delete_as_ever() -> None:
    target = Target(source=InProcess(offers_delete=False))
    options = replace(QUICK_PACE, profiles=("bare-metal", "fault"), only=("B2037",))
    report = await run(target, options)
    assert report.status("B2037") is Status.PASSED, report.behaviour("B2037")["reason"]
    deletes = {
        (entry["code"], entry["expected"])
        for entry in report.behaviour("B2037")["evidence"]
        if entry["method"] == "Delete"
    }
    assert deletes == {("UNIMPLEMENTED", "a plain refusal")}


async def test_a_target_that_heals_is_not_taken_for_one_that_moves() -> None:
    config = Config(seed_count=64, reconcile_interval_s=0.2, heal_after_s=2.0)
    server = Server(Provider(config))
    await server.start()
    try:
        options = replace(QUICK_PACE, profiles=("fault",), claims=("heal",), only=("B2037",))
        report = await run(Target(address=server.address), options)
    finally:
        await server.stop()
    assert report.status("B2037") is Status.PASSED, report.behaviour("B2037")["reason"]


async def test_a_cloud_that_does_not_delete_fails() -> None:
    target = Target(source=InProcess(offers_delete=False))
    options = replace(QUICK_PACE, profiles=("cloud",), only=("B109", "B310"))
    report = await run(target, options)
    assert report.status("B109") is Status.FAILED
    assert report.exit_code == 1


async def test_no_free_slot_is_an_error_and_never_a_skip() -> None:
    options = replace(QUICK_PACE, seed_count=2, only=("B407",))
    report = await run(Target(source=InProcess()), options)
    assert report.status("B407") is Status.ERROR
    assert "no free slot left" in report.behaviour("B407")["reason"]
    assert report.exit_code == 1


async def test_a_provider_without_machines_is_incomplete_and_not_a_crash() -> None:
    class Empty(Provider):
        def load(self) -> None:
            return

    spoken = Spoken()
    target = Target(source=InProcess(provider_type=Empty))
    report = await run(target, replace(QUICK_PACE, only=("B101", "B801")), spoken)
    assert report.status("B101") is Status.ERROR
    assert report.status("B801") is Status.ERROR
    assert report.verdict is Verdict.INCOMPLETE
    assert report.exit_code == 1
    assert "nothing to sweep" in spoken.lines[0]


async def test_the_quick_run_is_the_baseline_alone(reference_address: str) -> None:
    report = await run(Target(address=reference_address), replace(QUICK_PACE, quick=True))
    assert report.document["baseline"]["passed"] == 24
    assert report.verdict is Verdict.INCOMPLETE
    assert report.exit_code == 0, report.with_status(Status.FAILED)


async def test_nothing_at_the_target_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bigfleet_conformance.runner.run.REACH_S", 0.2)
    with pytest.raises(UnreachableError, match=r"nothing answers at 127\.0\.0\.1:1 "):
        await run(Target(address="127.0.0.1:1"), QUICK_PACE)


async def test_nothing_left_to_run_is_a_usage_error(reference_address: str) -> None:
    with pytest.raises(UsageError, match="nothing is left to run"):
        await run(Target(address=reference_address), replace(QUICK_PACE, only=("B7*",)))


async def test_the_seed_repeats_a_run_exactly() -> None:
    options = replace(QUICK_PACE, only=("B312",), seed=5)

    async def tokens() -> list[str]:
        report = await run(Target(source=InProcess()), options)
        entries = report.behaviour("B312")["evidence"]
        return [str(entry.get("token", "")).partition(" ")[2] for entry in entries]

    assert await tokens() == await tokens()


async def test_an_mtls_target_is_certified_with_the_ca_s_key(
    reference_command: str, tmp_path: Path
) -> None:
    authority = Authority.make("test")
    leaf = authority.leaf(hosts=("127.0.0.1",))
    files = {"tls.crt": leaf.certificate, "tls.key": leaf.key, "ca.crt": authority.pem}
    files["ca.key"] = authority.key_pem
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    tls = TlsPaths(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt")
    source = await Executable.ask(reference_command, tmp_path / "logs")
    instance = await source.boot(BootPlan(LaneName.SECURE, 0, 64, tls=tls))
    try:
        client = ClientTls(ca=tmp_path / "ca.crt", ca_key=tmp_path / "ca.key")
        target = Target(address=instance.address, tls=client)
        options = replace(QUICK_PACE, only=("B2010", "B301", "B302", "B308", "B401", "B103"))
        report = await run(target, options)
    finally:
        await instance.kill()
    assert report.exit_code == 0, report.with_status(Status.FAILED)


async def test_an_executable_is_certified_for_restarts_and_tls(
    reference_command: str, tmp_path: Path
) -> None:
    options = replace(
        QUICK_PACE,
        profiles=("core", "durable", "secure", "observable"),
        only=("B1001", "B1004", "B2011", "B2016", "B2017", "B2026", "B2001"),
        out=tmp_path,
    )
    report = await run(Target(command=reference_command), options)
    bad = report.with_status(Status.FAILED, Status.ERROR)
    assert [(row["id"], row["reason"]) for row in bad] == []
    confirmed = {c["capability"]: c["confirmed"] for c in report.document["claims"]}
    assert confirmed["Durable"]
    assert confirmed["Tls"]
    assert not confirmed["Heal"]
    assert report.document["provider"]["name"] == "reference"
    assert report.document["provider"]["version"] == "1.0.0"
    assert (tmp_path / "logs").is_dir()


async def test_every_process_is_ended_when_a_run_is_cancelled(
    reference_command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = replace(QUICK_PACE, profiles=("durable",), only=("B1006",))
    started: list[asyncio.subprocess.Process] = []
    enough = asyncio.Event()
    real = asyncio.create_subprocess_exec

    async def remember(*words: str, **keywords: Any) -> asyncio.subprocess.Process:
        started.append(await real(*words, **keywords))
        if len(started) == 4:
            enough.set()
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", remember)
    task = asyncio.create_task(run(Target(command=reference_command), options))
    await asyncio.wait_for(enough.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [process.pid for process in started if process.returncode is None] == []


async def test_a_failed_boot_shows_the_last_words(reference_command: str, tmp_path: Path) -> None:
    target = Target(command=f"{reference_command} --tls-cert={tmp_path / 'x'}")
    with pytest.raises(BootError, match="belong together"):
        await run(target, QUICK_PACE)


async def test_the_usual_stand_in_without_the_same_kit_makes_errors() -> None:
    class NoFaultSlots(Provider):
        def load(self) -> None:
            super().load()
            for slot in self.inventory.slots.values():
                slot.record.labels.clear()

    target = Target(source=InProcess(provider_type=NoFaultSlots))
    report = await run(target, replace(QUICK_PACE, profiles=("fault",), only=("B701",)))
    assert report.status("B701") is Status.ERROR
    assert "bring a fault subject of your own" in report.behaviour("B701")["reason"]


async def test_over_http_every_lane_has_a_fake_cloud(
    reference_command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "providers" / "x"
    folder.mkdir(parents=True)
    (folder / "conformance.yaml").write_text(
        f"executable: {reference_command}\n"
        "profiles: [core]\n"
        "http:\n"
        "  cloud: python cloud.py {port} {latency_ms} {facts}\n"
        "  args: ['--provider=x-{team}', '--slow-ms=300']\n"
    )
    (tmp_path / "cloud.py").write_text(
        "import http.server, sys\n"
        "open(sys.argv[3], 'w').write('{\"team\": \"a\"}')\n"
        "address = ('127.0.0.1', int(sys.argv[1]))\n"
        "http.server.HTTPServer(address, http.server.BaseHTTPRequestHandler).serve_forever()\n"
    )
    monkeypatch.chdir(tmp_path)
    options = replace(QUICK_PACE, substrate="http", only=("B101", "B2001", "B805"))
    report = await run(Target(provider="x"), options)
    bad = report.with_status(Status.FAILED, Status.ERROR)
    assert [(row["id"], row["reason"]) for row in bad] == []
    assert report.status("B2001") is Status.PASSED
    assert report.document["substrate"] == "http"
