"""What is seen of a run while it goes on."""

import io

from rich.console import Console

from bigfleet_conformance import Status, all_behaviours
from bigfleet_conformance.cli.progress import Lines, Terminal
from bigfleet_conformance.results import Result

ROWS = all_behaviours()


def console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, force_terminal=terminal, width=120, color_system=None), out


def test_without_a_terminal_an_area_is_one_line_and_a_failure_another() -> None:
    shown, out = console(terminal=False)
    with Lines(shown) as lines:
        lines.planned([ROWS["B101"], ROWS["B501"], ROWS["B501"]])
        lines.finished(Result("B501", Status.PASSED, "core"))
        lines.finished(Result("B101", Status.FAILED, "core", "still bound"))
        lines.finished(Result("B501", Status.PASSED, "slow"))
    assert out.getvalue().splitlines() == [
        "3 looks at 2 areas",
        "failed B101 (core): still bound",
        "lifecycle: done, 1 did not pass",
        "metadata: done",
    ]


def test_on_a_terminal_there_is_a_bar_with_lane_behaviour_and_counts() -> None:
    shown, out = console(terminal=True)
    with Terminal(shown) as bar:
        bar.say("probe: 3 machines")
        bar.planned([ROWS["B101"]])
        bar.started(ROWS["B101"], "core")
        bar.finished(Result("B101", Status.FAILED, "core", "[red] still bound"))
    text = out.getvalue()
    for part in ("probe: 3 machines", "core: B101", "1/1", "1 failed", "[red] still bound"):
        assert part in text
