"""A real Prometheus on loopback, and promtool: Debian's packages, where they are installed.

`make e2e` installs them where it may. Elsewhere tests that need them say loudly that they did not
run; they never count as passed.
"""

import json
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from skipped_tests import missing_program
from whole_system import Target, answers, eventually

from kube import ports
from kube.processes import Process

Labels = frozenset[tuple[str, str]]


class QueryRefusedError(AssertionError):
    """Prometheus cannot make sense of a query."""


def binary(name: str) -> str:
    """Where `prometheus` or `promtool` is; the test does not run where it is not."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(missing_program("Prometheus", "prometheus"))
    return found


@dataclass(frozen=True, slots=True)
class Prometheus:
    """One that runs."""

    address: str
    process: Process

    def is_ready(self) -> bool:
        """Whether it can be asked."""
        self.process.check()
        return answers(self.address, "/-/ready")

    def query(self, expression: str, at: float | None = None) -> dict[Labels, float]:
        """Values by labels; a number without labels is one value."""
        found = self._get("/api/v1/query", query=expression, **({"time": str(at)} if at else {}))
        if found["resultType"] in ("scalar", "string"):
            return {frozenset(): float(found["result"][1])}
        return {_labels(one["metric"]): float(one["value"][1]) for one in found["result"]}

    def samples(self, selector: str, at: float) -> dict[Labels, list[tuple[float, float]]]:
        """What it has scraped: times and values of every series, with its name as a label."""
        found = self._get("/api/v1/query", query=selector, time=str(at))
        return {
            _labels(one["metric"]): [(float(t), float(v)) for t, v in one["values"]]
            for one in found["result"]
        }

    def rule_health(self) -> dict[str, str]:
        """Whether each rule could be evaluated: `ok`, `unknown` before the first time, or `err`."""
        groups = self._get("/api/v1/rules")["groups"]
        return {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}

    def up(self) -> int:
        """How many targets answer."""
        return int(sum(self.query("up").values()))

    def _get(self, path: str, **words: str) -> Any:
        url = f"http://{self.address}{path}?{urllib.parse.urlencode(words)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                said = error.read().decode()
            raise QueryRefusedError(f"{words}: {said}") from error


def _labels(metric: Mapping[str, str]) -> Labels:
    return frozenset(metric.items())


@contextmanager
def watching(
    folder: Path, targets: Sequence[Target], rules: Sequence[Any], seconds: int = 2
) -> Iterator[Prometheus]:
    """A Prometheus that scrapes these every few seconds and evaluates these rules."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": list(rules)}))
    jobs: dict[str, list[dict[str, Any]]] = {}
    for target in targets:
        entry = {"targets": [target.address], "labels": dict(target.labels)}
        jobs.setdefault(target.job, []).append(entry)
    document = {
        "global": {"scrape_interval": f"{seconds}s", "evaluation_interval": f"{seconds}s"},
        "rule_files": [str(folder / "rules.yaml")],
        "scrape_configs": [
            {"job_name": job, "static_configs": entries} for job, entries in jobs.items()
        ],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(document))
    port = ports.take()
    address = f"127.0.0.1:{port.number}"
    command = [
        binary("prometheus"), f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}",
    ]  # fmt: skip
    process = Process("prometheus", command, folder / "prometheus.log")
    process.start()
    try:
        made = Prometheus(address, process)
        eventually(made.is_ready, "Prometheus is ready")
        yield made
        process.check()
    finally:
        process.kill()
        port.give_back()
