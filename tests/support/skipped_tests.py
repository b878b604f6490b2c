"""What a run did not test: said in its last line, and with `--no-skips` a failure.

A test that needs a program which is not there skips itself with a reason that says how to install
it. On a user's machine that is fine as long as it is seen; in CI nothing may be skipped.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest


def missing_program(name: str, package: str) -> str:
    """The reason for which a test skips itself."""
    return f"needs {name}; install it with `make {package}` or `apt-get install {package}`"


def add_option(parser: pytest.Parser) -> None:
    """Of pytest: whether a skipped test is a failure."""
    parser.addoption(
        "--no-skips", action="store_true", help="fail when a test was skipped, as .ci/run does"
    )


def reason_of(report: Any) -> str:
    """Why a test was skipped, from its report."""
    longrepr = report.longrepr
    words = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return words.removeprefix("Skipped: ")


def last_line(reasons: Iterable[str]) -> str:
    """What was not tested and what to do about it, in one line; nothing when all was tested."""
    counted = Counter(reasons)
    parts = [
        f"{count} test{'s' * (count != 1)} ({reason})" for reason, count in sorted(counted.items())
    ]
    return f"NOT TESTED: {'; '.join(parts)}" if parts else ""


def skipped(config: pytest.Config) -> list[str]:
    """The reasons of all tests that this run skipped; workers leave them to their controller."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return []
    return [reason_of(report) for report in reporter.stats.get("skipped", ())]


def fail_when_skipped(session: pytest.Session) -> None:
    """At the end of a session: `--no-skips` turns a run that was green into a failed one."""
    config = session.config
    if config.getoption("--no-skips") and skipped(config) and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def print_last_line(config: pytest.Config) -> None:
    """After everything else that pytest prints."""
    line = last_line(skipped(config))
    if line:
        config.get_terminal_writer().line(line, yellow=True, bold=True)
