"""Takes what a Node that just became Ready reports, and corrects the promise of its whole type.

The reports are kept in the store, so that a restart does not promise again what Nodes have denied.
How a report corrects a promise is `capacity.node_reports`; the watch that sees Nodes is
`readiness.kube`, so without a kubeconfig for the cluster the shipped reserve stays as it is.
"""

from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.backend.state.ledger import Ledger
from bigfleet_providerkit.capacity.node_reports import read_report
from bigfleet_providerkit.catalogue.offering_catalogue import OfferingCatalogue
from bigfleet_providerkit.errors import StoreUnavailable
from bigfleet_providerkit.http.metrics import Metrics
from bigfleet_providerkit.machines.record import Record
from bigfleet_providerkit.readiness.judge import Judge
from bigfleet_providerkit.store import rows
from bigfleet_providerkit.store.interface import Store
from bigfleet_providerkit.substrate import Host


class ReserveCorrection:
    """What Nodes of this provider report, taken once per Configure."""

    def __init__(
        self,
        ledger: Ledger,
        catalogue: OfferingCatalogue,
        judge: Judge,
        metrics: Metrics,
        log: FilteringBoundLogger,
    ) -> None:
        self._store: Store = ledger.store
        self._catalogue = catalogue
        self._judge = judge
        self._metrics = metrics
        self._log = log
        self.on_change: Callable[[], None] = lambda: None
        self.measure()

    def take(self, host: Host, record: Record) -> None:
        """Take the report of a machine whose node is Ready."""
        report = read_report(self._judge.reported(host, record.id, record.cluster))
        if not report:
            return
        type_word = self._catalogue.reported(record.id, report)
        if not type_word:
            return
        row = rows.pack(self._catalogue.reports.row(type_word))
        self._store.submit({("meta", rows.REPORTS_KEY + type_word.encode()): row}, self._stored)
        self.measure()
        least = self._catalogue.reports.least(type_word)
        self._log.info(
            "a Node corrected what its type promises", type=type_word, machine=record.id,
            cpu_milli=int(least["cpu"] * 1000), memory_mib=int(least["memory"] / 2**20),
        )  # fmt: skip
        self.on_change()

    def measure(self) -> None:
        """Bring the metric up to date."""
        for resource, share in self._catalogue.reserve_differences().items():
            self._metrics.differences.labels(resource).set(share)

    def _stored(self, error: StoreUnavailable | None) -> None:
        if error is not None:
            self._log.warning(
                "what Nodes report could not be stored; the next Configure repeats it",
                error=str(error),
            )
