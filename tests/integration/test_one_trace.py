"""One trace from roll-up to node Ready, put together from what separate processes send."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from otlp_collector import Collector, Seen, collecting
from whole_system import a_system, eventually

pytestmark = pytest.mark.timeout(400)
WAY = (
    # The span, who records it, and below which it hangs.
    ("roll-up", "bigfleet-operator", ""),
    ("ingest", "bigfleet-shard", "roll-up"),
    ("decide", "bigfleet-shard", "roll-up"),
    ("Provision", "bigfleet-shard", "decide"),
    ("Create", "bigfleet-provider", "Provision"),
    ("create transition", "bigfleet-provider", "Create"),
    ("machine created", "bigfleet-shard", "Provision"),
    ("Bootstrap", "bigfleet-shard", "decide"),
    ("bootstrap", "bigfleet-operator", "Bootstrap"),
    ("Configure", "bigfleet-provider", "Bootstrap"),
    ("configure transition", "bigfleet-provider", "Configure"),
    ("machine joined", "bigfleet-shard", "Bootstrap"),
    ("node Ready", "bigfleet-operator", "bootstrap"),
)


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


@pytest.fixture(scope="module")
def trace(
    collector: Collector, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, list[Seen]]]:
    """The trace of a pod that needed a machine, by the names of its spans."""
    flag = f"--otlp-endpoint={collector.address}"
    folder = tmp_path_factory.mktemp("traced")
    with a_system(folder, replicas=0, shards=1, more=(flag,)) as system:
        system.ask("web-0")
        eventually(system.api.join, "a machine became a node")
        wanted = {name for name, _, _ in WAY}
        eventually(
            lambda: wanted <= set(collector.trace_of("node Ready")),
            "every span of the way has arrived",
        )
        yield collector.trace_of("node Ready")


@pytest.mark.parametrize(("name", "process", "above"), WAY)
def test_every_step_is_in_the_trace_below_its_cause(
    trace: dict[str, list[Seen]], name: str, process: str, above: str
) -> None:
    span = trace[name][0]
    assert span.process == process
    assert span.error == ""
    assert span.start <= span.end
    parents = {one.span: one for one in trace.get(above, [])}
    assert (span.parent in parents) if above else span.parent == ""
    if above:
        assert parents[span.parent].start <= span.start


def test_the_trace_is_about_one_machine(trace: dict[str, list[Seen]]) -> None:
    named = ("Provision", "Create", "Bootstrap", "Configure", "node Ready")
    machines = {trace[name][0].attributes["bigfleet.machine"] for name in named}
    assert len(machines) == 1


def test_without_an_endpoint_nothing_of_opentelemetry_is_imported() -> None:
    look = (
        "import sys, bigfleet.cli.processes.shard, bigfleet.shard.server.process; "
        "import bigfleet.operator.server; "
        "import bigfleet_providerkit.process.running_provider; "
        "from bigfleet.observe.tracing import open_spans; "
        "assert open_spans('', 1.0, service='s', version='1', instance='i') is None; "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stdout.strip() == "[]"
