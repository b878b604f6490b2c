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

from bigfleet_conformance.options import ClientTls, Options, Target
from bigfleet_conformance.registry import Behaviour, all_behaviours
from bigfleet_conformance.report.model import Report
from bigfleet_conformance.results import Status, Verdict
from bigfleet_conformance.runner.run import run

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
