"""pytest form: one item per behaviour, after a single run.

    pytest --bigfleet-target 127.0.0.1:9001
    pytest --bigfleet-exec "bigfleet-provider-x" --bigfleet-profile all

The plug-in is installed with the suite and does nothing without one of these options, so it imports
the suite only then. An error is an error, an illegal skip fails.
"""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from bigfleet_conformance.registry import Behaviour
    from bigfleet_conformance.report.model import Report

_TARGET, _EXEC, _PROFILE = "--bigfleet-target", "--bigfleet-exec", "--bigfleet-profile"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The three options."""
    group = parser.getgroup("bigfleet", "BigFleet provider conformance")
    group.addoption(_TARGET, default="", help="host:port of a running provider")
    group.addoption(_EXEC, default="", help="command that starts a provider")
    group.addoption(_PROFILE, action="append", default=[], help="profile; may be repeated")


def pytest_configure(config: pytest.Config) -> None:
    """Markers for areas and profiles."""
    config.addinivalue_line("markers", "conformance: a behaviour of the conformance suite")
    config.addinivalue_line("markers", "conformance_area(name): the area of a behaviour")
    config.addinivalue_line("markers", "conformance_profile(name): a profile that requires it")


def _asked(config: pytest.Config) -> bool:
    return bool(config.getoption(_TARGET) or config.getoption(_EXEC))


def pytest_collection(session: pytest.Session) -> None:
    """Nothing else is collected: the run is about the provider."""
    if _asked(session.config):
        session.config.args = []


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Put the behaviours in the place of whatever was found."""
    yield
    if not _asked(config):
        return
    from bigfleet_conformance.registry import all_behaviours

    story = Story(config)
    items[:] = [
        BehaviourItem.from_parent(session, name=behaviour.id, behaviour=behaviour, story=story)
        for behaviour in all_behaviours().values()
    ]


class Story:
    """The one run, made when the first item needs it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._report: Report | None = None

    def report(self) -> "Report":
        """The report of the run."""
        if self._report is None:
            from bigfleet_conformance import Options, Target, run

            target = Target(
                address=self._config.getoption(_TARGET), command=self._config.getoption(_EXEC)
            )
            profiles = tuple(self._config.getoption(_PROFILE)) or ("core",)
            self._report = asyncio.run(run(target, Options(profiles=profiles)))
        return self._report


class Unmet(Exception):  # noqa: N818 - what pytest prints is the reason alone
    """The provider does something else."""


class BehaviourItem(pytest.Item):
    """One behaviour as a test."""

    def __init__(
        self, *, behaviour: "Behaviour", story: Story, name: str, parent: pytest.Session
    ) -> None:
        super().__init__(name, parent)
        self.behaviour = behaviour
        self.story = story
        self.add_marker(pytest.mark.conformance)
        self.add_marker(pytest.mark.conformance_area(str(behaviour.area)))
        for profile in behaviour.profiles:
            self.add_marker(pytest.mark.conformance_profile(str(profile)))

    def setup(self) -> None:
        """An error of the run is an error of the item."""
        row = self.story.report().behaviour(self.behaviour.id)
        if row["status"] in ("error", "not_implemented"):
            raise RuntimeError(f"{self.behaviour.id} could not be carried out: {row['reason']}")

    def runtest(self) -> None:
        """Failed or skipped as in the report."""
        row = self.story.report().behaviour(self.behaviour.id)
        if row["status"] == "failed":
            raise Unmet(row["reason"])
        if row["status"] in ("skipped", "not_run"):
            if row["required"] and row["status"] == "not_run":
                raise Unmet("required, and it did not run")
            pytest.skip(row["reason"])

    def repr_failure(self, excinfo: "pytest.ExceptionInfo[BaseException]") -> str:  # type: ignore[override]
        """The reason, without a traceback of the suite."""
        return f"{self.behaviour.id} {self.behaviour.title}: {excinfo.value}"

    def reportinfo(self) -> tuple[str, None, str]:
        """Where a reader finds more."""
        return self.behaviour.test.__module__, None, f"{self.name}: {self.behaviour.title}"
