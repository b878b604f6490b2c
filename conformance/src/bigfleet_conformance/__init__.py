"""What "BigFleet-compatible" means, as a suite that can be run.

    registry of behaviours + one target  ->  Report { behaviors, verdict, summary }

The suite is a client: it talks to a provider over gRPC as a shard does. It imports the contract
(bigfleet_api) alone and knows neither providerkit nor any provider.

    from bigfleet_conformance import Options, Target, run

    report = await run(Target(address="127.0.0.1:9001"), Options(profiles=("core",)))
    print(report.verdict)

    registry     every behaviour as data; behaviours/ holds them, one module per area
    harness/     how a behaviour talks to a provider, and small oracles of what should happen
    runner/      boots, lanes, claims, budgets
    results, report/   verdict, report.json and the files drawn from it
    cli/, plugin       command line and pytest: thin layers over `run`
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigfleet_conformance.options import ClientTls, Options, Target
    from bigfleet_conformance.registry import Behaviour, all_behaviours
    from bigfleet_conformance.report.model import Report
    from bigfleet_conformance.results import Status, Verdict
    from bigfleet_conformance.runner.run import run

# Imported when first used: the pytest plug-in lies in this package and is loaded by every pytest
# in the environment, which must not pay for gRPC, nor import it before a test sets its floor.
_PLACES = {
    "Behaviour": "registry",
    "ClientTls": "options",
    "Options": "options",
    "Report": "report.model",
    "Status": "results",
    "Target": "options",
    "Verdict": "results",
    "all_behaviours": "registry",
    "run": "runner.run",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


__all__ = [
    "Behaviour",
    "ClientTls",
    "Options",
    "Report",
    "Status",
    "Target",
    "Verdict",
    "all_behaviours",
    "run",
]
