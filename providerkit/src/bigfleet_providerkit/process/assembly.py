"""The backend of one provider, wired together."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bigfleet_providerkit.backend.heal import Healer
from bigfleet_providerkit.backend.loops import Loops
from bigfleet_providerkit.backend.reconcile.reconciler import Reconciler
from bigfleet_providerkit.backend.runner import Runner
from bigfleet_providerkit.backend.state.ledger import Ledger
from bigfleet_providerkit.backend.steps import Steps
from bigfleet_providerkit.catalogue.offering_catalogue import OfferingCatalogue
from bigfleet_providerkit.catalogue.reserve_correction import ReserveCorrection
from bigfleet_providerkit.http.metrics import Metrics, ScrapeCollector
from bigfleet_providerkit.kit import Kit
from bigfleet_providerkit.machines.state import Kind
from bigfleet_providerkit.options.model import KitOptions
from bigfleet_providerkit.options.settings import Settings
from bigfleet_providerkit.readiness.judge import Judge, NodeWatch
from bigfleet_providerkit.spec import ProviderSpec
from bigfleet_providerkit.substrate import Substrate
from bigfleet_providerkit.version import __version__

O = TypeVar("O", bound=KitOptions)  # noqa: E741 - the options model of one provider


@dataclass(frozen=True, slots=True)
class Backend:
    """Everything behind the service."""

    ledger: Ledger
    steps: Steps
    runner: Runner
    reconciler: Reconciler
    healer: Healer
    loops: Loops
    kit: Kit
    judge: Judge


def build_backend(
    spec: ProviderSpec[O],
    options: O,
    settings: Settings,
    substrate: Substrate,
    ledger: Ledger,
    catalogue: OfferingCatalogue,
    kit: Kit,
    metrics: Metrics,
) -> Backend:
    """Wire the parts; nothing runs yet."""
    runtime, log = kit.runtime, kit.log
    judge = Judge(substrate, _watch(options), runtime.clock, settings.poll_interval)
    steps = Steps(
        substrate, ledger, catalogue, judge, settings, runtime, kit.codec,
        longest_name=spec.limits.name,
    )  # fmt: skip
    correction = ReserveCorrection(ledger, catalogue, judge, metrics, log)
    steps.on_ready = correction.take
    healer = Healer(substrate, ledger, steps, settings, runtime, metrics, log)
    reconciler = Reconciler(
        substrate, ledger, catalogue, steps, settings, runtime, metrics, log, healer.failed
    )
    loops = Loops(substrate, ledger, catalogue, reconciler, settings, runtime, metrics, log)
    runner = Runner(ledger, steps, runtime, metrics, log, healer.failed, loops.reconcile_soon)
    correction.on_change = loops.renew_soon
    _describe(spec, options, settings, ledger, kit, metrics)
    return Backend(ledger, steps, runner, reconciler, healer, loops, kit, judge)


def _watch(options: KitOptions) -> NodeWatch | None:
    if options.cluster_kubeconfigs is None:
        return None
    from bigfleet_providerkit.readiness.kube import KubeNodes

    return KubeNodes(Path(options.cluster_kubeconfigs))


def _describe(
    spec: ProviderSpec[O],
    options: O,
    settings: Settings,
    ledger: Ledger,
    kit: Kit,
    metrics: Metrics,
) -> None:
    import platform

    backend = "fake" if options.use_fake_backend or spec.always_fake else "real"
    metrics.info.labels(settings.label, spec.version, backend).set(1)
    metrics.build.labels("provider", __version__, "", platform.python_version()).set(1)
    for kind in Kind:
        limit = settings.timeouts.drain if kind is Kind.DRAIN else settings.limit(kind)
        metrics.limits.labels(kind.word).set(limit)
    metrics.registry.register(
        ScrapeCollector(
            ledger.inventory.counts,
            lambda: [(work.kind, work.started) for work in list(ledger.work.values())],
            kit.clock.now,
        )
    )
