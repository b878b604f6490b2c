"""Log lines keep their form; series exist from the start; bounds are those of the tables."""

import io
import json

import pytest
from prometheus_client import generate_latest

from bigfleet_providerkit.http.metrics import LONG, MEDIUM, Metrics
from bigfleet_providerkit.logs.setup import make_logger


def test_text_lines_are_time_level_message_and_keys() -> None:
    out = io.StringIO()
    log = make_logger("info", "text", out)
    log.info("rpc", method="Create", note="two words", empty="")
    log.debug("not shown")
    log.warning("careful", error='a "b"\nc')
    first, second = out.getvalue().splitlines()
    assert first.endswith(' INFO rpc method=Create note="two words" empty=""')
    assert first[10] == "T"
    assert second.endswith(r' WARN careful error="a \"b\"\nc"')


def test_json_lines_hold_the_same_words() -> None:
    out = io.StringIO()
    make_logger("debug", "json", out).error("component exited", addr=":1")
    line = json.loads(out.getvalue())
    assert (line["msg"], line["level"], line["addr"]) == ("component exited", "error", ":1")


def test_an_exception_brings_its_trace() -> None:
    out = io.StringIO()
    log = make_logger("info", "text", out)
    try:
        raise KeyError("lost")
    except KeyError:
        log.exception("panic in a handler")
    assert "ERROR panic in a handler" in out.getvalue()
    assert "KeyError: 'lost'" in out.getvalue()


def test_bounds_of_the_histograms() -> None:
    assert len(MEDIUM) == 57
    assert len(LONG) == 34
    assert {0.05, 0.25, 0.5, 12, 15, 30, 600} <= set(MEDIUM)
    assert {15, 30, 60, 600, 3600, 7200} <= set(LONG)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("rpc_total", {"method": "List", "code": "OK"}),
        ("fenced_total", {"method": "Drain"}),
        ("transitions_total", {"kind": "delete", "outcome": "discarded"}),
        ("hosts_lost_total", {"capacity_type": "BareMetal"}),
        ("api_calls_total", {"op": "Run", "outcome": "auth"}),
        ("reconcile_total", {"outcome": "error"}),
        ("price_refresh_total", {"outcome": "stale_kept"}),
        ("store_errors_total", {"op": "compact"}),
        ("panics_total", {}),
        ("heal_failures_total", {}),
        ("spot_interruptions_total", {}),
    ],
)
def test_series_with_closed_labels_exist_from_the_start(name: str, labels: dict[str, str]) -> None:
    metrics = Metrics(("Run",))
    assert metrics.registry.get_sample_value(f"bigfleet_provider_{name}", labels) == 0


def test_no_series_is_shown_but_those_that_are_promised() -> None:
    metrics = Metrics(ops=["RunInstances"])
    metrics.rpc.labels("Create", "OK").inc()
    metrics.rpc_seconds.labels("Create").observe(0.1)
    assert "_created" not in generate_latest(metrics.registry).decode()
