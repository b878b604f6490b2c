"""The executable `bigfleet-provider-fake` as a person meets it."""

import subprocess
import sys

import pytest

from bigfleet.model import MachineState
from bigfleet.provider import ProviderClient, ProviderSite
from bigfleet.wire.fencing import FencingStamps
from bigfleet_providerkit.testing import ProviderProcess

FAKE = ProviderProcess.module("bigfleet_lab.fake.main")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*FAKE, *arguments], capture_output=True, text=True, check=False)


def test_help_says_that_it_is_for_tests_and_names_its_levers() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "TEST-ONLY" in done.stdout
    for lever in (
        "--slow-ms",
        "--delays",
        "--stock-outs",
        "--losses",
        "--slot-prices",
        "--fail-rate",
    ):
        assert lever in done.stdout


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--slot-prices=gold=1", "fake: --slot-prices 'gold=1': "),
        ("--delays=create=soon", "fake: --delays 'create=soon': "),
        ("--lose=all", "fake: unknown option lose"),
        ("--tls-cert=only", "fake: TLS needs all three files"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(argument: str, said: str) -> None:
    done = run(argument)
    assert done.returncode == 2
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


async def test_it_serves_with_the_levers_of_its_command_line_and_stops_when_told() -> None:
    arguments = ("--seed-count=6", "--slot-prices=on_demand=1.5", "--delays=create=1h")
    with ProviderProcess(FAKE, *arguments).wait_open() as process:
        site = ProviderSite("fake", process.address)
        client = ProviderClient.dial(site, FencingStamps("shard-a", 1))
        listing = await client.list()
        assert {machine.price_per_hour for machine in listing.machines} == {1.5, 0.12}
        await client.create(listing.machines[0].id)
        assert (await client.get(listing.machines[0].id)).state is MachineState.CREATING
        await client.close()
        assert process.stop() == 0


def test_the_client_needs_neither_the_fake_nor_the_kit() -> None:
    code = (
        "import sys, bigfleet.provider; "
        "print([n for n in sys.modules if n.startswith(('bigfleet_providerkit', 'pydantic'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
