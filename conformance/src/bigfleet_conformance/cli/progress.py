"""What a person sees of a run: a progress bar on a terminal, one line per area elsewhere."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bigfleet_conformance.registry import Behaviour, all_behaviours
from bigfleet_conformance.results import Result, Status


class Terminal:
    """A bar with lane, behaviour, counts and time left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._counts: Counter[Status] = Counter()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("starting", total=None, counts="")

    def __enter__(self) -> "Terminal":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, line: str) -> None:
        """A sentence above the bar."""
        self._console.print(line, markup=False, highlight=False)

    def planned(self, behaviours: Sequence[Behaviour]) -> None:
        """The length of the bar."""
        self._progress.update(self._task, total=len(behaviours))

    def started(self, behaviour: Behaviour, lane: str) -> None:
        """What is being looked at."""
        self._progress.update(self._task, description=f"{lane}: {behaviour.id}")

    def finished(self, result: Result) -> None:
        """One more; failures are said at once."""
        self._counts[result.status] += 1
        counts = ", ".join(f"{count} {status}" for status, count in self._counts.items())
        self._progress.update(self._task, advance=1, counts=counts)
        if result.status in (Status.FAILED, Status.ERROR):
            self._console.print(
                f"[red]{result.status}[/red] {result.id} ({result.lane}): {escape(result.reason)}"
            )


class Lines:
    """One line for every area that is done, and for every failure."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._areas = {id: str(behaviour.area) for id, behaviour in all_behaviours().items()}
        self._open: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._bad: Counter[str] = Counter()

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def say(self, line: str) -> None:
        """A sentence."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def planned(self, behaviours: Sequence[Behaviour]) -> None:
        """How much there is to do."""
        self._open.update(str(behaviour.area) for behaviour in behaviours)
        self.say(f"{len(behaviours)} looks at {len(self._open)} areas")

    def started(self, behaviour: Behaviour, lane: str) -> None:
        """Counted when it ends."""

    def finished(self, result: Result) -> None:
        """Count; failures are said at once, and an area when it is done."""
        area = self._areas[result.id]
        self._done[area] += 1
        if result.status in (Status.FAILED, Status.ERROR):
            self._bad[area] += 1
            self.say(f"{result.status} {result.id} ({result.lane}): {result.reason}")
        if self._done[area] == self._open[area]:
            bad = f", {self._bad[area]} did not pass" if self._bad[area] else ""
            self.say(f"{area}: done{bad}")
