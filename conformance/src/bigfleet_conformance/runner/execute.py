"""Runs single behaviours and checks within their budgets and turns how they end into results."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import grpc

from bigfleet_conformance.baseline import Check, SkippedCheck
from bigfleet_conformance.errors import CannotRunError, Finding
from bigfleet_conformance.harness.evidence import Evidence
from bigfleet_conformance.harness.probe import Probe, Setting
from bigfleet_conformance.registry import Behaviour
from bigfleet_conformance.results import CheckResult, Result, Status


class Observer(Protocol):
    """An observer of a run: a terminal, a log, a test."""

    def say(self, line: str) -> None:
        """A sentence about the run."""
        ...

    def planned(self, behaviours: Sequence[Behaviour]) -> None:
        """Which results will come; a behaviour that runs on two lanes comes twice."""
        ...

    def started(self, behaviour: Behaviour, lane: str) -> None:
        """A behaviour begins."""
        ...

    def finished(self, result: Result) -> None:
        """A behaviour has ended."""
        ...


class Silent:
    """No person watches."""

    def say(self, line: str) -> None:
        """Nothing."""

    def planned(self, behaviours: Sequence[Behaviour]) -> None:
        """Nothing."""

    def started(self, behaviour: Behaviour, lane: str) -> None:
        """Nothing."""

    def finished(self, result: Result) -> None:
        """Nothing."""


async def run_behaviour(
    behaviour: Behaviour, setting: Setting, lane: str, seed: int, budget_s: float
) -> Result:
    """One behaviour on one lane."""
    evidence = Evidence()
    probe = Probe(setting, behaviour.id, seed, evidence)
    began = time.monotonic()
    status, reason = await outcome(lambda: behaviour.test(probe), budget_s)
    return Result(
        behaviour.id,
        status,
        lane,
        reason,
        time.monotonic() - began,
        tuple(entry.as_json() for entry in evidence.entries),
    )


async def run_check(check: Check, setting: Setting, seed: int, budget_s: float) -> CheckResult:
    """One check of the baseline."""
    probe = Probe(setting, check.name, seed, Evidence())
    began = time.monotonic()
    status, reason = await outcome(lambda: check.test(probe), budget_s)
    return CheckResult(check.name, check.group, status, reason, time.monotonic() - began)


async def outcome(test: Callable[[], Awaitable[None]], budget_s: float) -> tuple[Status, str]:
    """How a test ends."""
    try:
        async with asyncio.timeout(budget_s):
            await test()
    except Finding as finding:
        return Status.FAILED, str(finding)
    except SkippedCheck as skipped:
        return Status.SKIPPED, str(skipped)
    except CannotRunError as error:
        return Status.ERROR, str(error)
    except TimeoutError:
        return Status.ERROR, f"the time budget of {budget_s:.0f} s has passed"
    except grpc.aio.AioRpcError as error:
        return Status.ERROR, f"a call of the harness failed: {error.code().name} {error.details()}"
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this behaviour's alone
        return Status.ERROR, f"{type(error).__name__}: {error}"
    return Status.PASSED, ""
