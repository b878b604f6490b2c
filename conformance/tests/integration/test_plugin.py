"""The pytest form: one item per behaviour, and silence when it is not asked for."""

import asyncio
import subprocess
import sys
from pathlib import Path


async def test_one_item_per_behaviour(reference_address: str, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "--bigfleet-target", reference_address, "-q", "-rs"),
        *("-p", "no:cacheprovider", "--rootdir", str(tmp_path)),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    shown = out.decode()
    assert process.returncode == 0, shown
    assert "82 passed, 49 skipped" in shown
