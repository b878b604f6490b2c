"""First boot without cloud-init: one shell script brings hook, host key and base, at every boot."""

import subprocess
from pathlib import Path

import pytest

from bigfleet_providerkit import OptionError
from bigfleet_providerkit.hostexec import userdata
from bigfleet_providerkit.hostexec.contract import script_text
from bigfleet_providerkit.hostexec.hostkey import HostKey, mint_host_key


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the host lie in a folder of the test."""
    monkeypatch.setattr(userdata, "HOST_KEY_FILE", str(tmp_path / "etc/ssh/ssh_host_ed25519_key"))
    monkeypatch.setattr(userdata, "BASE_FILE", str(tmp_path / "var/first boot"))
    return tmp_path


def boot(script: str) -> None:
    subprocess.run(["/bin/sh", "-c", script], check=True, timeout=30)


def test_the_script_puts_hook_key_and_base_in_their_places(root: Path) -> None:
    key, hook, output = mint_host_key(b"s" * 32), root / "opt/it's a hook", root / "said"
    base = f"#!/bin/sh\necho once >> '{output}'\n"
    script = userdata.first_boot(base, str(hook), key, "shell")
    boot(script)
    assert hook.read_text() == script_text("bootstrap.sh")
    assert hook.stat().st_mode & 0o777 == 0o755
    private = Path(userdata.HOST_KEY_FILE)
    assert private.read_text().strip() == key.private.strip()
    assert private.stat().st_mode & 0o777 == 0o600
    assert Path(f"{private}.pub").read_text().strip() == key.public
    before = private.stat().st_mtime_ns
    boot(script)
    assert private.stat().st_mtime_ns == before, "the second boot leaves the key alone"
    assert output.read_text() == "once\nonce\n"
    assert not list(root.rglob("*.new"))


def test_cloud_config_is_refused_where_only_scripts_run() -> None:
    with pytest.raises(OptionError, match="has to be a script that begins with #!"):
        userdata.first_boot("#cloud-config\n", "/opt/hook", HostKey(), "shell")
