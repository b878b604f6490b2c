"""What happens inside imitated hosts: real shells in folders, real SSH with the injected key."""

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bigfleet_fakecloud import serving
from bigfleet_fakecloud.errors import BadRequest, Conflict, ScriptError
from bigfleet_fakecloud.guests.levers import Lever
from bigfleet_fakecloud.guests.user_data import read_user_data
from bigfleet_providerkit import CommandKind, Host, Retryable, Unauthorized
from bigfleet_providerkit.hostexec.channels.ssh import SshAccess, SshChannel
from bigfleet_providerkit.hostexec.hostkey import mint_host_key, new_seed
from bigfleet_providerkit.hostexec.userdata import first_boot
from guestpage import BLOB, USER_DATA, HostPage, a_command, until


async def configured(page: HostPage, ref: str) -> None:
    command = a_command()
    done = await page.guests.run(ref, command.script, command.secret)
    assert (done.exit_code, done.stderr) == (0, "")


async def test_the_wrapper_runs_in_a_shell_and_the_hook_gets_the_whole_blob() -> None:
    page = HostPage()
    ref = page.host()
    await configured(page, ref)
    (run,) = page.guests.history(ref)
    assert (run.kind, run.what, run.exit_code) == ("configure", "cluster-a", 0)
    assert run.blob_sha256 == hashlib.sha256(BLOB).hexdigest()
    assert (run.taints, run.provider_id) == ("a=b:NoSchedule", "cloud:///h-1")
    assert page.guests.cluster(ref) == "cluster-a"
    folder = page.guests.folder(ref).root
    assert not any(b"join me" in path.read_bytes() for path in folder.rglob("*") if path.is_file())
    probe = a_command(CommandKind.PROBE)
    assert (await page.guests.run(ref, probe.script)).exit_code == 0
    other = a_command(cluster="cluster-b", operation="op-2")
    refused = await page.guests.run(ref, other.script, other.secret)
    assert (refused.exit_code, "belongs to cluster cluster-a" in refused.stderr) == (4, True)
    drain = a_command(CommandKind.DRAIN, operation="op-3")
    assert (await page.guests.run(ref, drain.script)).exit_code == 0
    assert page.guests.cluster(ref) == ""


async def test_a_lever_decides_how_hooks_end_and_for_how_many_runs() -> None:
    page = HostPage()
    ref, command = page.host(), a_command()
    page.guests.levers.set(Lever(ref, "configure", exit_code=75, stderr="not yet", times=1))
    first = await page.guests.run(ref, command.script, command.secret)
    assert (first.exit_code, first.stderr.strip()) == (75, "not yet")
    await configured(page, ref)


async def test_a_host_that_ends_takes_a_hanging_hook_along() -> None:
    page = HostPage()
    ref, command = page.host(), a_command()
    page.guests.levers.set(Lever(hang=True))
    running = asyncio.create_task(page.guests.run(ref, command.script, command.secret))
    folder = page.guests.folder(ref)

    async def started() -> bool:
        return (folder.root / "run/bigfleet/blob").exists()

    await until(started, "the start of the hook")
    page.hosts.act(ref, "delete")
    assert (await running).exit_code < 0
    assert not folder.root.exists()


def test_a_host_costs_nothing_until_it_is_used() -> None:
    page = HostPage()
    for number in range(8000):
        page.host(f"h-{number}")
    assert page.guests.used == 0
    page.guests.folder("h-7999")
    assert page.guests.used == 1
    assert len({page.guests.address(f"h-{number}") for number in range(8000)}) == 8000


async def test_two_hundred_hosts_are_configured_at_once() -> None:
    page = HostPage()
    refs = [page.host(f"h-{number}") for number in range(200)]
    await asyncio.gather(*(configured(page, ref) for ref in refs))
    assert {page.guests.cluster(ref) for ref in refs} == {"cluster-a"}


async def test_a_reboot_empties_run_and_keeps_the_disk() -> None:
    page = HostPage()
    ref, probe = page.host(), a_command(CommandKind.PROBE)
    await configured(page, ref)
    page.hosts.happen(ref, "stop")
    with pytest.raises(Conflict, match="not running"):
        page.guests.folder(ref)
    page.hosts.happen(ref, "start")
    assert (await page.guests.run(ref, probe.script)).exit_code == 1
    assert page.guests.cluster(ref) == "cluster-a"


@contextmanager
def ssh_page() -> Iterator[tuple[HostPage, SshChannel, list[str]]]:
    page = HostPage()
    page.guests.serve_ssh()
    pinned: list[str] = []
    with serving(page.cloud):
        access = SshAccess(page.cloud.facts["ssh_key"], "ubuntu", int(page.cloud.facts["ssh_port"]))
        yield page, SshChannel(access, lambda host, pin: pinned.append(pin)), pinned


def test_an_address_that_was_shown_before_the_boot_keeps_the_user_data() -> None:
    page = HostPage()
    page.guests.address("h-9")
    page.guests.boot("h-9", USER_DATA)
    assert page.guests.folder("h-9").path("/opt/bigfleet/bootstrap").exists()
    assert page.guests._guests["h-9"].user_data == USER_DATA


async def test_ssh_reaches_each_host_at_its_own_address_with_its_own_key() -> None:
    with ssh_page() as (page, channel, pinned):
        keys = {ref: mint_host_key(new_seed()) for ref in ("h-1", "h-2")}
        for ref, key in keys.items():
            page.host(ref, first_boot("", "/opt/bigfleet/bootstrap", key))
        for ref, key in keys.items():
            host = Host(ref, address=page.guests.address(ref), pin=key.pin)
            done = await channel.run(host, a_command(cluster=f"of-{ref}"))
            assert (done.exit_code, done.stderr) == (0, "")
            assert page.guests.cluster(ref) == f"of-{ref}"
        assert pinned == []
        wrong = Host("h-1", address=page.guests.address("h-1"), pin=keys["h-2"].pin)
        with pytest.raises(Unauthorized, match="not the one it was made with"):
            await channel.run(wrong, a_command())
        page.hosts.happen("h-1", "stop")
        with pytest.raises(Retryable):
            await channel.run(Host("h-1", address=page.guests.address("h-1")), a_command())


async def test_a_host_without_an_injected_key_makes_its_own() -> None:
    with ssh_page() as (page, channel, pinned):
        page.host("h-1")
        host = Host("h-1", address=page.guests.address("h-1"))
        assert (await channel.run(host, a_command())).exit_code == 0
        assert len(pinned) == 1


def test_user_data_is_read_in_both_forms() -> None:
    script = "#!/bin/sh\nmkdir -p /etc/bigfleet && echo hello >/etc/bigfleet/motd\n"
    page = HostPage()
    folder = page.guests.folder(page.host("h-1", script))
    assert (folder.root / "etc/bigfleet/motd").read_text() == "hello\n"
    assert not Path("/etc/bigfleet/motd").exists()
    both = read_user_data(first_boot(script, "/opt/bigfleet/bootstrap", mint_host_key(new_seed())))
    assert set(both.files) == {"/opt/bigfleet/bootstrap", "/etc/ssh/ssh_host_ed25519_key"}
    assert [text.rstrip() for text in both.scripts] == [script.rstrip()]
    with pytest.raises(BadRequest, match="would ignore"):
        read_user_data("hello")
    assert read_user_data(USER_DATA).files


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"exit": 1}, "has no 'exit'"),
        ({"exit_code": 256}, "from 0 to 255"),
        ({"exit_code": True}, "cannot be True"),
        ({"kind": "create"}, "configure or drain"),
        ({"ready_after": -1}, "number of seconds"),
    ],
)
def test_a_lever_that_cannot_be_is_refused(body: dict[str, object], reason: str) -> None:
    with pytest.raises(ScriptError, match=reason):
        Lever.parse(body)


async def test_a_host_that_had_its_address_before_its_power_boots_its_user_data() -> None:
    page = HostPage()
    page.guests.address("h-1")
    ref = page.host(user_data="#cloud-config\nwrite_files:\n  - {path: /etc/here, content: x}\n")
    assert page.guests.folder(ref).path("/etc/here").read_text("utf-8") == "x"
