"""`bigfleet operator` and `bigfleet pod-controller` as processes: start, probes, words, stop."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bigfleet_providerkit.testing import free_port

PATIENCE = 60.0
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {token: secret}}]
"""
OPERATOR = (
    "operator", "--cluster-id", "c-1", "--shard-addr", "127.0.0.1:2", "--allow-stub-bootstrap",
)  # fmt: skip
COMMAND = (sys.executable, "-m", "bigfleet.cli.main")


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path, int]]:
    kubeconfig, log = folder / "kubeconfig", folder / "log"
    kubeconfig.write_text(KUBECONFIG)
    with free_port() as port:
        pass
    flags = ("--kubeconfig", str(kubeconfig), "--metrics-addr", f"127.0.0.1:{port}")
    with log.open("wb") as file:
        process = subprocess.Popen([*COMMAND, *arguments, *flags], stderr=file, stdout=file)
    try:
        yield process, log, port
    finally:
        process.kill()
        process.wait()


def page(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


def wait(port: int) -> None:
    end = time.monotonic() + PATIENCE
    while page(port, "/healthz")[0] != 200:
        assert time.monotonic() < end, "it never answered"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("arguments", "words", "prefix"),
    [
        (
            OPERATOR,
            r"INFO operator started cluster=c-1 shard_addr=127\.0\.0\.1:2 rollup_interval=10s",
            "bigfleet_operator_",
        ),
        (
            ("pod-controller",),
            "INFO pod controller started",
            "bigfleet_unschedulable_pod_controller_",
        ),
    ],
)
def test_it_starts_with_nothing_reachable_and_stops_when_told(
    tmp_path: Path, arguments: tuple[str, ...], words: str, prefix: str
) -> None:
    with running(tmp_path, *arguments) as (process, log, port):
        wait(port)
        code, reason = page(port, "/readyz")
        assert code == 503
        assert "watches are not complete" in reason
        assert f"{prefix}api_requests_total" in page(port, "/metrics")[1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        text = log.read_text()
        assert re.search(words, text)
        assert "signal received, shutting down" in text
        assert "secret" not in text
        # Everything is a line of the promised form.
        assert all(re.match(r"\d{4}-\d\d-\d\dT\S+Z [A-Z]+ ", one) for one in text.splitlines())


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("operator", "--cluster-id", "c-1"), 2, "--shard-addr is missing"),
        (OPERATOR[:5], 2, "--bootstrap-template is missing"),
        ((*OPERATOR[:5], "--bootstrap-template", "none.j2"), 1, "none.j2 cannot be read"),
        ((*OPERATOR, "--kubeconfig", "none"), 1, "none"),
        (("pod-controller", "--adopt-foreign-nodes=perhaps"), 2, "--adopt-foreign-nodes"),
        (("pod-controller", "--priority-class-defaults", "none.yaml"), 1, "none.yaml"),
    ],
)
def test_bad_input_is_one_line_and_an_exit_code(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    given = () if "--kubeconfig" in arguments else ("--kubeconfig", str(kubeconfig))
    done = subprocess.run(
        [*COMMAND, *arguments, *given],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == code
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
