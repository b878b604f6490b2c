"""Nothing that reads what others wrote can be made to fail in a way it does not document.

Each parser is fuzzed in a process of its own, guided by which of its lines an input reaches, from
a fixed seed. A finding is printed with the input that caused it.
"""

import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).parents[2] / "support" / "fuzzing.py"
RUNS = {"quantity": 1_000_000, "scenario": 200_000, "machine": 300_000, "need": 300_000}
LONGEST_INPUT = {"quantity": 300, "scenario": 1_500, "machine": 600, "need": 600}


@pytest.mark.parametrize("target", sorted(RUNS))
def test_a_parser_gives_a_value_or_the_refusal_it_documents(target: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            str(FUZZER),
            target,
            f"-runs={RUNS[target]}",
            f"-max_len={LONGEST_INPUT[target]}",
            "-seed=1",
            "-verbosity=0",
            "-print_final_stats=1",
            f"-artifact_prefix={tmp_path}/finding-",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    told = (done.stdout + done.stderr)[-3_000:]
    assert done.returncode == 0, told
    assert f"stat::number_of_executed_units: {RUNS[target]}" in told, told
