"""The executable as a runner, a chart or a person meets it: gRPC, probes, signals, exit codes."""

import asyncio
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_providerkit import State
from bigfleet_providerkit.service.server import SERVICE
from bigfleet_providerkit.testing import ProviderProcess, Remote, Shard, eventually, free_port

TEMPLATE = ProviderProcess.module("bigfleet_provider_template")
FAULT = [sys.executable, "-c", "from bigfleet_providerkit.memory.fault import main; main()"]


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*TEMPLATE, *arguments], capture_output=True, text=True, timeout=30, check=False
    )


def fetch(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def test_a_whole_life_over_grpc_with_a_durable_store(tmp_path: Path) -> None:
    with free_port() as http_port:
        process = ProviderProcess(
            TEMPLATE, "--use-fake-backend", "--seed-count=9", f"--state={tmp_path / 's.db'}",
            f"--metrics-addr=127.0.0.1:{http_port}", "--provider=certify", log=tmp_path / "log",
        )  # fmt: skip
    with process.wait_open() as provider:
        async with provider.channel() as channel:
            shard = Shard(Remote(channel))
            machines = await shard.machines()
            kinds = [machine.capacity_type for machine in machines]
            assert (len(machines), kinds.count(pb.CAPACITY_TYPE_SPOT)) == (9, 3)
            assert machines[0].id == "certify/OnDemand/example-standard-4/example-zone-a/000"
            prices = sorted({m.price_per_hour for m in machines})
            assert prices == pytest.approx([0.12, 0.4])
            machine = machines[0].id
            await shard.create(machine)
            host = (await shard.until(machine, State.IDLE)).host
            assert host.provider == "certify"
            await shard.configure(machine, "c", {"n": "\0"}, b"x" * (3 * 1024 * 1024))
            bound = await shard.until(machine, State.CONFIGURED)
            assert (bound.cluster, dict(bound.shard_metadata)) == ("c", {"n": "\0"})
            await shard.drain(machine)
            await shard.until(machine, State.IDLE)
            await shard.delete(machine)
            await shard.until(machine, State.SPECULATIVE)
            with pytest.raises(grpc.aio.AioRpcError) as fenced:
                await Shard(Remote(channel)).create(machine)
            assert fenced.value.code() is grpc.StatusCode.FAILED_PRECONDITION
            await health_and_reflection(channel)
        await asyncio.to_thread(probes, http_port)
        answer = inspect(tmp_path / "s.db", machine)
        assert '"state": "Speculative"' in answer
        assert '"machines": 9' in inspect(tmp_path / "s.db")
        unknown = run("inspect", "no-such-machine", f"--state={tmp_path / 's.db'}")
        assert (unknown.returncode, "there is no machine" in unknown.stdout) == (1, True)
        assert provider.stop() == 0
    log = (tmp_path / "log").read_text()
    assert " INFO rpc method=Create code=OK dur_ms=" in log
    assert " INFO transition ended machine=certify/OnDemand/" in log
    assert " WARN rpc method=Create code=FAILED_PRECONDITION" in log
    assert "signal received, shutting down" in log
    assert "listening" in log
    assert "xxxx" not in log


async def health_and_reflection(channel: grpc.aio.Channel) -> None:
    health = health_pb2_grpc.HealthStub(channel)
    for service in ("", SERVICE):
        answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
    call = reflection.ServerReflectionInfo()
    await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
    names = {s.name for s in (await call.read()).list_services_response.service}
    assert SERVICE in names
    await call.done_writing()


def probes(port: int) -> None:
    assert fetch(f"http://127.0.0.1:{port}/healthz")[0] == 200
    assert fetch(f"http://127.0.0.1:{port}/readyz") == (200, "ok\n")
    assert fetch(f"http://127.0.0.1:{port}/nothing")[0] == 404
    status, text = fetch(f"http://127.0.0.1:{port}/metrics")
    assert status == 200
    for line in (
        'bigfleet_provider_info{backend="fake",provider="certify",version="0.1.0"} 1.0',
        'bigfleet_provider_machines{capacity_type="Spot",state="Speculative"} 3.0',
        'bigfleet_provider_transitions_total{kind="create",outcome="success"} 1.0',
        'bigfleet_provider_fenced_total{method="Create"} 1.0',
        'bigfleet_provider_transition_timeout_seconds{kind="drain"} 600.0',
        'bigfleet_provider_api_calls_total{op="CreateHost",outcome="quota"} 0.0',
        "bigfleet_provider_panics_total 0.0",
        "bigfleet_provider_reconcile_last_success_timestamp_seconds",
    ):
        assert line in text, line


def inspect(state: Path, *words: str) -> str:
    return run("inspect", *words, f"--state={state}").stdout


def test_version_and_help_need_no_credentials() -> None:
    assert run("--version").stdout == "bigfleet-provider-template 0.1.0 (providerkit 0.1.0)\n"
    text = run("-help").stdout
    for name in ("--slow-ms", "--reconcile-interval", "--heal-after", "--poll-interval"):
        assert name in text


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        ([], 2, "template: no credentials found"),
        (["--use-fake-backend", "--nope"], 2, "unknown option nope"),
        (["--use-fake-backend", "dance"], 2, "unknown command 'dance'"),
        (["--use-fake-backend", "--tls-cert=x"], 2, "TLS needs all three files"),
        (["--use-fake-backend", "--tls-cert=x", "--tls-key=y", "--tls-ca=z"], 2, "TLS files"),
        (["--use-fake-backend", "--offerings=[]"], 2, "at least one entry"),
        (["--use-fake-backend", "--state=/nowhere/s.db"], 1, "/nowhere/s.db"),
        (["--use-fake-backend", "--interruption-priors=/nowhere"], 2, "/nowhere cannot be read"),
        (["inspect", "--use-fake-backend"], 2, "inspect needs --state"),
        (["check", "--use-fake-backend", "--output=xml"], 2, "--output is table or json"),
        (["inspect", "--state=/nowhere/s.db"], 1, "no provider answers"),
    ],
)
def test_bad_input_is_one_line_and_an_exit_code(
    arguments: list[str], code: int, complaint: str
) -> None:
    done = run("--addr=127.0.0.1:0", "--metrics-addr=0", *arguments)
    assert done.returncode == code, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("template: ")
    assert complaint in last


def test_a_taken_port_and_a_taken_state_are_named(tmp_path: Path) -> None:
    state = f"--state={tmp_path / 's.db'}"
    with ProviderProcess(TEMPLATE, "--use-fake-backend", state).wait_open() as first:
        port = run(f"--addr={first.address}", "--use-fake-backend", "--metrics-addr=0")
        assert port.returncode == 1
        assert f"cannot listen on {first.address}" in port.stderr
        taken = run("--addr=127.0.0.1:0", "--use-fake-backend", "--metrics-addr=0", state)
        assert taken.returncode == 1
        assert f"s.db is in use by process {first.process.pid} (host" in taken.stderr
        first.kill()
    with ProviderProcess(TEMPLATE, "--use-fake-backend", state).wait_open() as third:
        assert third.stop() == 0


def test_check_tries_everything_without_serving() -> None:
    done = run("check", "--use-fake-backend", "--seed-count=5")
    assert done.returncode == 0
    assert "5 slots, 0 hosts with label example" in done.stdout
    for form in (["--output=json"], ["--output", "json"]):
        found = json.loads(run("check", "--use-fake-backend", "--seed-count=5", *form).stdout)
        assert found == {"provider": "template", "slots": 5, "hosts": 0, "label": "example"}


async def test_the_fault_provider_fails_on_command(tmp_path: Path) -> None:
    process = ProviderProcess(FAULT, "--transition-timeout=1s", log=tmp_path / "log")
    with process.wait_open() as provider:
        async with provider.channel() as channel:
            shard = Shard(Remote(channel))
            machines = await shard.machines()
            assert len(machines) == 64 + 12
            faulty = {
                fault: next(
                    m.id for m in machines if m.labels.get("conformance.fault/create") == fault
                )
                for fault in ("error", "stockout")
            }
            for fault, word in (("error", "InvalidRequest:"), ("stockout", "OutOfCapacity:")):
                await shard.create(faulty[fault])
                failed = await shard.until(faulty[fault], State.FAILED)
                assert failed.last_error.startswith(word)
            clusters = (
                "fault-error", "fault-timeout", "fault-slow-ok", "fault-readiness-block",
                "fault-lose-host",
            )  # fmt: skip
            for cluster, machine in zip(clusters, machines, strict=False):
                await shard.create(machine.id)
                await shard.until(machine.id, State.IDLE)
                await shard.configure(machine.id, cluster)
            words = ("HookFailed", "Timeout", "Timeout", "NotReady", "HostLost")
            for word, machine in zip(words, machines, strict=False):
                failed = await shard.until(machine.id, State.FAILED)
                assert failed.last_error.startswith(f"{word}:")
        assert provider.stop() == 0


async def test_a_hangup_reads_the_offerings_again(tmp_path: Path) -> None:
    path = tmp_path / "offerings.yaml"
    offering = "[{instance_type: example-standard-4, zone: example-zone-a, count: %d}]"
    path.write_text(offering % 2)
    process = ProviderProcess(TEMPLATE, "--use-fake-backend", f"--offerings={path}")
    with process.wait_open() as provider:
        async with provider.channel() as channel:
            shard = Shard(Remote(channel))
            assert len(await shard.machines()) == 2
            path.write_text(offering % 5)
            provider.process.send_signal(signal.SIGHUP)

            async def grown() -> bool:
                return len(await shard.machines()) == 5

            await eventually(grown)
            path.write_text("[broken")
            provider.process.send_signal(signal.SIGHUP)
            assert len(await shard.machines()) == 5
        assert provider.stop() == 0
