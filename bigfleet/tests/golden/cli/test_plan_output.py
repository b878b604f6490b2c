"""What `bigfleet plan` prints for the examples, byte for byte.

A file is made again by the command in its test: `COLUMNS=100 bigfleet plan ...`, with the time of
the decision replaced by `T ms`.
"""

import re
from pathlib import Path

import pytest

from commandline import run

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[3] / "examples"
TIME = re.compile(r"[\d,.]+ ms")


@pytest.mark.parametrize(
    ("golden", "words"),
    [
        ("first-fleet.json", ["first-fleet.json", "--output", "json"]),
        ("first-fleet.txt", ["first-fleet.json"]),
        ("short-of-gpus.json", ["short-of-gpus.json", "--output", "json"]),
        ("short-of-gpus.txt", ["short-of-gpus.json"]),
        ("short-of-gpus-need-1.txt", ["short-of-gpus.json", "--explain", "1"]),
        ("short-of-gpus-need-2.txt", ["short-of-gpus.json", "--explain", "2"]),
        ("training-gangs.json", ["training-gangs.json", "--output", "json"]),
    ],
)
def test_the_plan_of_an_example_is_printed_as_it_was(golden: str, words: list[str]) -> None:
    scenario, *options = words
    result = run("plan", "--scenario", str(EXAMPLES / scenario), *options, columns=100)
    assert result.exit_code == 0
    assert TIME.sub("T ms", result.stdout) == (HERE / golden).read_text(encoding="utf-8")
