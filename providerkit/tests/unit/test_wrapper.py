"""The wrapper script in a real shell, and the hook contract around it."""

import stat
import subprocess
from pathlib import Path

import pytest

from bigfleet_providerkit import CommandKind, HostResult, Retryable
from bigfleet_providerkit.errors import HookFailed
from bigfleet_providerkit.hostexec.contract import HookCall, check_result, command_for, script_text
from bigfleet_providerkit.substrate import HostCommand

HOOK = """#!/bin/sh
echo "$@" >"$HOOK_LOG"
if [ -n "${BIGFLEET_BLOB:-}" ] && [ -e "$BIGFLEET_BLOB" ]; then
    cat "$BIGFLEET_BLOB" >"$HOOK_LOG.blob"
    stat -c %a "$BIGFLEET_BLOB" >"$HOOK_LOG.mode"
fi
env | grep ^BIGFLEET_ | sort >"$HOOK_LOG.env"
echo "hook says" "$HOOK_EXIT" >&2
exit "$HOOK_EXIT"
"""


class HostFolder:
    """A host that is a folder: its /run/bigfleet, and a hook that notes what it saw."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run_folder = folder / "run"
        self.log = folder / "hook.log"
        self.hook = folder / "hook"
        self.hook.write_text(HOOK)
        self.hook.chmod(0o755)

    def call(self, kind: CommandKind, operation: str = "op-1", **fields: object) -> HookCall:
        return HookCall(
            kind, str(self.hook), "label", "m'a\"chine", operation, 33.9,
            cluster=str(fields.get("cluster", "clus ter")), grace=7, taints=("a=b:NoSchedule",),
            provider_id="cloud:///zone/h-1",
        )  # fmt: skip

    def run(self, command: HostCommand, blob: bytes = b"", exit_code: int = 0) -> HostResult:
        script = command.script.replace("/run/bigfleet", str(self.run_folder))
        done = subprocess.run(
            ["sh", "-c", script], input=blob, capture_output=True, check=False,
            env={"PATH": "/usr/bin:/bin", "HOOK_LOG": str(self.log), "HOOK_EXIT": str(exit_code)},
        )  # fmt: skip
        return HostResult(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def host(tmp_path: Path) -> HostFolder:
    return HostFolder(tmp_path)


def test_configure_hands_the_blob_to_the_hook_and_leaves_none_of_it(host: HostFolder) -> None:
    blob = b"#!/bin/sh\0\xffsecret" * 100
    result = host.run(command_for(host.call(CommandKind.CONFIGURE)), blob)
    assert result.exit_code == 0
    assert host.log.read_text() == "configure clus ter\n"
    assert Path(f"{host.log}.blob").read_bytes() == blob
    assert Path(f"{host.log}.mode").read_text() == "600\n"
    assert not (host.run_folder / "blob").exists()
    assert (host.run_folder / "done").read_text() == "op-1"
    assert stat.S_IMODE(host.run_folder.stat().st_mode) == 0o700


def test_the_hook_knows_machine_provider_taints_and_time_left(host: HostFolder) -> None:
    host.run(command_for(host.call(CommandKind.DRAIN)))
    seen = Path(f"{host.log}.env").read_text()
    assert "BIGFLEET_MACHINE_ID=m'a\"chine\n" in seen
    assert "BIGFLEET_PROVIDER=label\n" in seen
    assert "BIGFLEET_PROVIDER_ID=cloud:///zone/h-1\n" in seen
    assert "BIGFLEET_TAINTS=a=b:NoSchedule\n" in seen
    assert "BIGFLEET_TIMEOUT=33\n" in seen
    assert host.log.read_text() == "drain --grace 7\n"


@pytest.mark.parametrize("code", [1, 4, 75])
def test_a_failing_hook_keeps_its_code_and_leaves_nothing(host: HostFolder, code: int) -> None:
    host.run(command_for(host.call(CommandKind.CONFIGURE)), b"x")
    result = host.run(command_for(host.call(CommandKind.CONFIGURE, "op-2")), b"x", code)
    assert result.exit_code == code
    assert not (host.run_folder / "blob").exists()
    assert not (host.run_folder / "done").exists()


def test_a_probe_says_whether_this_operation_was_the_last_to_succeed(host: HostFolder) -> None:
    host.run(command_for(host.call(CommandKind.CONFIGURE)), b"x")
    assert host.run(command_for(host.call(CommandKind.PROBE))).exit_code == 0
    assert host.run(command_for(host.call(CommandKind.PROBE, "op-9"))).exit_code != 0


def test_exit_codes_become_classes() -> None:
    check_result(CommandKind.DRAIN, HostResult(0))
    with pytest.raises(Retryable):
        check_result(CommandKind.DRAIN, HostResult(75))
    with pytest.raises(HookFailed, match="drain ended with exit code 9: two lines"):
        check_result(CommandKind.DRAIN, HostResult(9, stderr="two\nlines\n"))


@pytest.mark.parametrize("name", ["wrapper.sh", "bootstrap.sh", "agent.sh"])
def test_every_script_is_posix_shell(name: str) -> None:
    checked = subprocess.run(["sh", "-n"], input=script_text(name).encode(), check=False)
    assert checked.returncode == 0


def test_the_default_hook_runs_a_program_and_waits_for_ready(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "kubectl").write_text("#!/bin/sh\necho True\n")
    (tools / "kubeadm").write_text("#!/bin/sh\nexit 0\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    hook, blob = tmp_path / "bootstrap", tmp_path / "blob"
    hook.write_text(script_text("bootstrap.sh"))
    blob.write_text(f"#!/bin/sh\ntouch {tmp_path}/joined\n")
    env = {
        "PATH": f"{tools}:/usr/bin:/bin", "BIGFLEET_BLOB": str(blob), "BIGFLEET_TIMEOUT": "5",
        "BIGFLEET_STATE_DIR": str(tmp_path / "state"), "BIGFLEET_HOST_ROOT": str(tmp_path),
        "BIGFLEET_KUBELET_CONFIG": str(tmp_path / "kubelet.conf"),
    }  # fmt: skip

    def bootstrap(*words: str) -> int:
        return subprocess.run(["sh", str(hook), *words], env=env, check=False).returncode

    assert bootstrap("configure", "cluster-a") == 0
    assert (tmp_path / "joined").exists()
    assert bootstrap("configure", "cluster-a") == 0
    assert bootstrap("configure", "cluster-b") == 4
    (tools / "kubectl").write_text("#!/bin/sh\nexit 0\n")
    assert bootstrap("drain", "--grace", "0") == 0
    assert not (tmp_path / "state" / "cluster").exists()
    assert bootstrap("drain", "--grace", "0") == 0


def test_a_probe_leaves_the_blob_of_a_hook_that_is_at_work(host: HostFolder) -> None:
    host.run_folder.mkdir(mode=0o700)
    blob = host.run_folder / "blob"
    blob.write_text("secret")
    assert host.run(command_for(host.call(CommandKind.PROBE))).exit_code == 1
    assert blob.read_text() == "secret"


def test_a_delivery_removes_what_an_earlier_one_left(host: HostFolder) -> None:
    host.run_folder.mkdir(mode=0o700)
    stray = host.run_folder / "blob.op-0"
    stray.write_text("secret")
    assert host.run(command_for(host.call(CommandKind.CONFIGURE)), b"blob").exit_code == 0
    assert not stray.exists()
