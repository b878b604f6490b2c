"""What a provider's script does inside an imitated host."""

import shlex

import pytest

from bigfleet_fakecloud import Guests
from bigfleet_fakecloud.guest import NO_SCRIPT, NOT_DONE, TRY_AGAIN, WRONG_CLUSTER


def a_script(kind: str, cluster: str = "cluster-a", operation: str = "op-1") -> str:
    said = {
        "BIGFLEET_KIND": kind,
        "BIGFLEET_CLUSTER": cluster,
        "BIGFLEET_OPERATION": operation,
        "BIGFLEET_BLOB_FROM": "/run/blob",
    }
    lines = [f"{name}={shlex.quote(value)}; export {name}" for name, value in said.items()]
    return "#!/bin/sh\n" + "\n".join(lines) + "\nset -u\n"


def joined(cluster: str = "cluster-a") -> Guests:
    guests = Guests()
    guests.write("h-1", "/run/blob", b"secret", append=False)
    assert guests.run("h-1", a_script("configure", cluster)).exit_code == 0
    return guests


def test_a_host_joins_with_its_blob_and_keeps_nothing_of_it() -> None:
    guests = joined()
    assert guests.of("h-1").cluster == "cluster-a"
    assert guests.of("h-1").files == {}


def test_a_file_comes_in_pieces() -> None:
    guests = Guests()
    for number, piece in enumerate((b"one ", b"two")):
        guests.write("h-1", "/run/blob", piece, append=number > 0)
    assert guests.of("h-1").files["/run/blob"] == b"one two"


def test_without_a_blob_it_asks_for_another_try() -> None:
    outcome = Guests().run("h-1", a_script("configure"))
    assert (outcome.exit_code, outcome.stderr) == (TRY_AGAIN, "there is no /run/blob")


def test_a_host_of_another_cluster_refuses() -> None:
    guests = joined("cluster-a")
    guests.write("h-1", "/run/blob", b"secret", append=False)
    assert guests.run("h-1", a_script("configure", "cluster-b")).exit_code == WRONG_CLUSTER
    assert guests.of("h-1").cluster == "cluster-a"


def test_a_drained_host_belongs_to_nobody() -> None:
    guests = joined()
    assert guests.run("h-1", a_script("drain", operation="op-2")).exit_code == 0
    assert guests.of("h-1").cluster == ""


def test_a_probe_knows_the_operation_that_ended_last() -> None:
    guests = joined()
    assert guests.run("h-1", a_script("probe", operation="op-1")).exit_code == 0
    assert guests.run("h-1", a_script("probe", operation="op-2")).exit_code == NOT_DONE


@pytest.mark.parametrize("cluster", ["", "it's", "two\nlines", "a; export BIGFLEET_CLUSTER"])
def test_odd_names_are_read_as_they_were_quoted(cluster: str) -> None:
    assert joined(cluster).of("h-1").cluster == cluster


def test_a_foreign_script_is_refused() -> None:
    assert Guests().run("h-1", "rm -rf /").exit_code == NO_SCRIPT


def test_a_host_that_went_away_comes_back_empty() -> None:
    guests = joined()
    guests.forget("h-1")
    assert guests.of("h-1").cluster == ""
