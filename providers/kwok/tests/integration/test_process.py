"""The executable: what it refuses to start with, and what it does not import."""

import subprocess
import sys
from pathlib import Path

from bigfleet_providerkit.testing import ProviderProcess

COMMAND = ProviderProcess.module("bigfleet_provider_kwok")


def test_a_missing_folder_of_kubeconfigs_is_one_sentence(tmp_path: Path) -> None:
    missing = f"--cluster-kubeconfigs={tmp_path / 'none'}"
    command = [*COMMAND, "--addr=127.0.0.1:0", f"--state={tmp_path / 's.db'}", missing]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is not a folder" in done.stderr


def test_the_fake_backend_imports_no_client() -> None:
    program = (
        "import asyncio, sys\n"
        "from bigfleet_provider_kwok.spec import SPEC\n"
        "from bigfleet_providerkit import start\n"
        "async def main():\n"
        "    running = await start(SPEC, SPEC.options(use_fake_backend=True, addr='127.0.0.1:0',"
        " metrics_addr='127.0.0.1:0'))\n"
        "    await running.stop()\n"
        "asyncio.run(main())\n"
        "wanted = ('aiohttp', 'bigfleet_provider_kwok.api')\n"
        "print([name for name in wanted if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
