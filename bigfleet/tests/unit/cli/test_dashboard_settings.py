"""`bigfleet dashboard`: what it is told is checked before it serves."""

import pytest

from bigfleet.cli.processes.dashboard_settings import DashboardSettings
from commandline import run


@pytest.mark.parametrize(
    ("flag", "value", "remedy"),
    [
        ("--coordinator", "foo", "write host:port"),
        ("--coordinator", "c-1:99999", "write host:port"),
        ("--shard", ":7780", "write host:port"),
        ("--shard-http", "s-1=nowhere", "write host:port"),
        ("--shard-http", "unknown", "write name=address"),
        ("--prometheus", "nope", "write http://host:port"),
        ("--prometheus", "http://:9090", "write http://host:port"),
        ("--prometheus", "http://host:port", "write http://host:port"),
        ("--cluster-api", "shop=host:6443", "write http://host:port"),
    ],
)
def test_a_bad_address_is_refused_with_its_flag_and_what_to_write(
    flag: str, value: str, remedy: str
) -> None:
    result = run("dashboard", "--coordinator", "127.0.0.1:7790", flag, value)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"bigfleet: {flag}: ")
    assert repr(value.rpartition("=")[2]) in result.stderr
    assert remedy in result.stderr


def test_addresses_that_are_some_are_taken() -> None:
    settings = DashboardSettings.load(
        {
            "coordinator": ["c-1:7790", "[::1]:7790"],
            "prometheus": "https://prometheus.example.com/path",
            "shard_http": ["s-1=127.0.0.1:8780"],
            "cluster_api": ["shop=http://127.0.0.1:8001"],
        }
    )
    assert settings.config().coordinators == ("c-1:7790", "[::1]:7790")
