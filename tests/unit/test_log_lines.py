"""The page of promised log lines says what was promised, and every process has a test for its own.

Rules and searches over logs are built on these words. A change of one is listed in the
changelog.
"""

from pathlib import Path

import pytest
from log_lines import promised

ROOT = Path(__file__).parents[2]
PROMISED = {
    "operator": {"operator started"},
    "shard": {
        "shard started", "shard stopped", "operator session opened", "operator session closed",
        "dialing out-of-tree provider", "decision audit log enabled", "coord client started",
        "coord client stopped", "shortfalls detected", "rollup quarantined",
        "quarantined rollup accepted",
        "rollup rejected at ingest validation; keeping last-known-good demand",
        "provider machine rejected at ingest", "shard_metadata decode failed at ingest",
        "dry-run: would execute action", "actuation paused: decided actions suppressed",
        "reclaim blast-radius cap engaged", "reclaim fallback: no operator session",
        "provider fenced this shard's mutation", "action failed", "reconcile failed",
        "inventory remove failed", "operator message handling", "operator session recv error",
        "ReportShard failed", "operator session identity rejected",
        "shard rejected read identity", "coordinator term validation failed",
        "phase attribution", "reclaim attribution", "gang attribution",
        "satisfied gang attribution",
    },
    "coordinator": {
        "coordinator started", "coordinator listening", "raft membership established",
        "snapshot exported", "join attempt failed; will retry", "snapshot export failed",
        "coordinator rejected shard identity", "coordinator rejected admin identity",
        "coordinator rejected read identity",
    },
    "provider": {"rpc"},
    "all": {
        "listening", "metrics serving", "signal received, shutting down", "component exited",
    },
}  # fmt: skip
TESTS = {
    "operator": "bigfleet/tests/integration/cli/test_log_lines.py",
    "shard": "bigfleet/tests/integration/shard/server/test_log_lines.py",
    "coordinator": "bigfleet/tests/integration/coordinator/test_log_lines.py",
    "provider": "providerkit/tests/integration/test_log_lines.py",
    "all": "bigfleet/tests/integration/cli/test_log_lines.py",
}


def test_the_page_lists_what_was_promised_and_nothing_twice() -> None:
    listed = [(line.process, line.level, line.words) for line in promised()]
    assert len(set(listed)) == len(listed)
    found: dict[str, set[str]] = {}
    for process, _, words in listed:
        found.setdefault(process, set()).add(words)
    assert found == PROMISED


@pytest.mark.parametrize("process", PROMISED)
def test_every_process_has_a_test_that_takes_its_lines_from_the_page(process: str) -> None:
    assert f'"{process}"' in (ROOT / TESTS[process]).read_text(encoding="utf-8")
    assert "look_for(" in (ROOT / TESTS[process]).read_text(encoding="utf-8")
