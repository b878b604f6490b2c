"""Our own scrapes and our own evaluator, in the place of a Prometheus."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from whole_system import Target, answers

from promql import Labels, Samples, evaluate, parse

EVERY_SECONDS = 2.0


class OwnWatch:
    """Keeps what it has scraped, and answers from it."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._targets, self._samples, self._lock = targets, Samples(), threading.Lock()
        self._over = threading.Event()

    def query(self, expression: str) -> dict[Labels, float]:
        """Values by labels, now."""
        with self._lock:
            return evaluate(parse(expression), self._samples, time.time())

    def up(self) -> int:
        """How many targets answer."""
        return sum(answers(target.address, "/healthz") for target in self._targets)

    def run(self) -> None:
        """Scrape until told to stop."""
        while not self._over.is_set():
            for target in self._targets:
                more = {**target.labels, "job": target.job, "instance": target.address}
                with self._lock:
                    self._samples.scrape(target.address, more)
            self._over.wait(EVERY_SECONDS)

    def stop(self) -> None:
        """No more scrapes."""
        self._over.set()


@contextmanager
def watching_ourselves(targets: Sequence[Target]) -> Iterator[OwnWatch]:
    """Scrapes in a thread."""
    made = OwnWatch(targets)
    thread = threading.Thread(target=made.run, name="scrapes", daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.stop()
        thread.join(60)
