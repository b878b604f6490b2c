"""The kit's interface is frozen: what a provider of today relies on is there tomorrow."""

import hashlib
import re
from pathlib import Path

from frozen_interface import broken, interface, recorded_lines

COMPAT = Path(__file__).parents[1] / "compat"
PAGE = Path(__file__).parents[2] / "docs" / "what-a-provider-must-bring.md"
WRITTEN = {"frozen_provider.py": "26b12e41ae17c290c0112d64da4ddd4a8ea6b1878fc4cbb5adc7afb6b4fa6ee1"}


def test_everything_that_was_recorded_still_holds() -> None:
    assert broken(recorded_lines(), interface()) == []


def test_everything_there_is_now_is_recorded() -> None:
    new = sorted(set(interface()) - set(recorded_lines()))
    assert new == [], "write it down: python tools/frozen_interface.py --add"


def test_a_name_that_went_a_new_demand_and_a_new_requirement_are_found() -> None:
    recorded = ["Host is there", "Substrate demands launch", "Launch requires machine_id"]
    now = ["Substrate demands launch, pause", "Launch requires machine_id, shade"]
    assert broken(recorded, now) == [
        "Host is there",
        "Substrate demands launch; now: Substrate demands launch, pause",
        "Launch requires machine_id; now: Launch requires machine_id, shade",
    ]
    assert broken(recorded, [*recorded, "Host takes shade in place 14"]) == []


def test_the_frozen_provider_is_as_it_was_written() -> None:
    folder = COMPAT / "frozen_provider"
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.py")
    }
    assert found == WRITTEN, "change the kit so that this provider works, not the provider"


def test_the_page_names_every_method_of_the_interface() -> None:
    page = PAGE.read_text("utf-8")
    demanded = [line for line in recorded_lines() if " demands " in line]
    names = {name for line in demanded for name in re.findall(r"\w+", line.split(" demands ")[1])}
    assert names <= set(re.findall(r"`(\w+)`?", page)), names - set(re.findall(r"`(\w+)", page))
