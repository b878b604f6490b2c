"""A test's rung is the folder it lies in."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def rung_of(path: str) -> str | None:
    spec = importlib.util.spec_from_file_location("root_conftest", ROOT / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    answer: str | None = module.rung_of(Path(path))
    return answer


@pytest.mark.parametrize(
    ("path", "rung"),
    [
        ("bigfleet/tests/unit/test_a.py", "unit"),
        ("bigfleet/tests/property/decision/test_a.py", "property"),
        ("tests/integration/test_a.py", "integration"),
        ("somewhere/tests/else/api/tests/golden/test_a.py", "golden"),
        ("bigfleet/tests/test_a.py", None),
        ("bigfleet/tests/units/test_a.py", None),
        ("tools/test_a.py", None),
    ],
)
def test_the_rung_is_the_folder_below_tests(path: str, rung: str | None) -> None:
    assert rung_of(path) == rung
