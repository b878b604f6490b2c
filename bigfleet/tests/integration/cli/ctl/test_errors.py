"""What goes wrong is one line that names the remedy, with exit code 2 for bad input and 1 else."""

import grpc
import pytest

from commandline import run
from ctlfleet import CannedCoordinator, CannedShard, ctl, deaf, entry, serving, status
from ctlworld import World

Code = grpc.StatusCode


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["list-shards", "--colour"], "--colour"),
        (["list-shard"], "list-shard"),
        (["--coordinator", "nowhere", "list-shards"], "write --coordinator host:port"),
        (["--coordinator", "a:0", "list-shards"], "write --coordinator host:port"),
        (["--shard-addr", "s-1:x", "status"], "write --shard-addr host:port"),
        (["list-shards", "--timeout", "soon"], "--timeout: 'soon' is not a duration"),
        (["list-shards", "--timeout", "0s"], "out of range"),
        (["list-shards", "--output"], "option --output needs a value"),
        (["list-shards", "--output", "xml"], "'xml'"),
        (["list-shards", "--tls-cert", "c.pem"], "add --tls-key and --tls-ca"),
        (
            ["list-shards", "--tls-cert=a", "--tls-key=b", "--tls-ca=c"],
            "TLS files cannot be used",
        ),
        (["assign-domain", "zone", "s-1"], "'zone' is not a domain: write it like topology"),
        (["set-quota", "aws"], "or --remove"),
        (["set-quota", "aws", "s-1=3", "--remove"], "not both"),
        (["set-quota", "aws", "s-1=-3"], "'s-1=-3' is not a share"),
        (["set-quota", "aws", "s-1=1", "s-1=2"], "'s-1' is named twice"),
        (["register-provider", "aws", "here"], "'here' is not an address"),
        (["register-provider", "aws", "http://here:9001"], "'http://here:9001' is not an address"),
        (["list-shards", "--coordinator", "https://c-1:7790"], "write --coordinator host:port"),
        (["watch", "--kind", "prempt"], "'prempt' is not a kind of decision: write bootstrap"),
        (["list-machines", "--state", "asleep"], "asleep"),
        (["list-machines", "--limit", "-1"], "is negative"),
        (["inspect-needs", "--limit", "-1"], "is negative"),
        (["watch", "--count", "-1"], "not negative"),
        (["--shard-addr", "s:1", "list-shards"], "needs a coordinator: add --coordinator"),
        (["--shard-addr", "s:1", "status", "--shard", "s-1"], "--shard"),
        (["--shard-addr", "s:1", "inspect-needs", "--shard", "s-1"], "leave --shard out"),
        (["bind-cluster", "shop"], "Missing argument"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words: list[str], complaint: str) -> None:
    result = ctl(*words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("bigfleetctl: ")
    assert complaint in result.stderr


def test_an_unreachable_coordinator_is_named_with_what_to_do() -> None:
    with deaf() as address:
        result = ctl("--coordinator", address, "list-shards")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == (
        f"bigfleetctl: cannot reach the coordinator at {address}: no process listens there; "
        "check that "
        "it runs, or name another address with --coordinator; if it speaks TLS, add --tls-cert, "
        "--tls-key and --tls-ca\n"
    )


def test_all_unreachable_coordinators_are_named_on_one_line() -> None:
    with deaf() as one, deaf() as two:
        result = ctl("--coordinator", f"{one},{two}", "list-shards")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert f"no coordinator answers ({one}: no process listens there; {two}: " in result.stderr


def test_a_name_that_does_not_resolve_is_said_to_be_so() -> None:
    result = ctl("--coordinator", "unknown.invalid:7790", "--timeout", "5s", "list-shards")
    assert result.exit_code == 1
    assert "unknown.invalid:7790" in result.stderr
    assert "name cannot be resolved" in result.stderr or "did not answer" in result.stderr


def test_an_unreachable_shard_is_named_with_what_to_do() -> None:
    with deaf() as address:
        result = ctl("--shard-addr", address, "inspect-needs")
    assert result.exit_code == 1
    assert f"cannot reach the shard at {address}: no process listens there" in result.stderr
    assert "--shard-addr" in result.stderr


def test_a_shard_that_is_called_a_coordinator_is_asked_about() -> None:
    with serving(CannedShard(status("s-1"))) as address:
        result = ctl("--coordinator", address, "list-shards")
    assert result.exit_code == 1
    assert "(ListShards): upgrade it, or check that a coordinator listens there" in result.stderr


def test_an_old_shard_cannot_do_it() -> None:
    with serving(CannedShard(status("s-1")), old=True) as address:
        result = ctl("--shard-addr", address, "pause")
        assert result.exit_code == 1
        assert "this shard's version cannot do it (Pause): upgrade it" in result.stderr
        seen = ctl("--shard-addr", address, "status")
        assert seen.exit_code == 0
        assert "this shard's version cannot do it (GetStatus): upgrade it" in seen.stdout


@pytest.mark.parametrize(
    ("code", "detail", "exit_code", "complaint"),
    [
        (Code.INVALID_ARGUMENT, "shard_id is empty", 2, "shard_id is empty"),
        (Code.NOT_FOUND, "no shard 's-9'", 1, "no shard 's-9'; `bigfleetctl list-shards` shows"),
        (Code.ALREADY_EXISTS, "the domain is s-1's", 1, "the domain is s-1's"),
        (Code.UNAVAILABLE, "the store is full", 1, "the store is full; try again in a moment"),
        (Code.PERMISSION_DENIED, "AssignDomain is for admin", 1, "bigfleet://admin may do"),
        (Code.RESOURCE_EXHAUSTED, "too much", 1, "too much; try again in a moment"),
        (Code.INTERNAL, "two\nlines", 1, "two lines"),
    ],
)
def test_a_refusal_is_told_in_the_words_of_the_one_that_refused(
    fleet: World, code: grpc.StatusCode, detail: str, exit_code: int, complaint: str
) -> None:
    fleet.coordinator.refuses["AssignDomain"] = (code, detail)
    result = ctl(*fleet.at, "assign-domain", "zone=a", "s-1")
    assert result.exit_code == exit_code
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert complaint in result.stderr
    assert fleet.at[1] in result.stderr


def test_a_shard_refuses_in_its_own_words(fleet: World) -> None:
    fleet.one.refuses["ForgetCluster"] = (
        Code.FAILED_PRECONDITION,
        "cluster 'shop' has a session: stop its operator first",
    )
    result = ctl(*fleet.at, "forget-cluster", "shop", "--yes")
    assert result.exit_code == 1
    assert "has a session: stop its operator first" in result.stderr


def test_a_deadline_names_the_option_that_extends_it(fleet: World) -> None:
    fleet.coordinator.refuses["ListShards"] = (Code.DEADLINE_EXCEEDED, "")
    result = ctl(*fleet.at, "list-shards", "--timeout", "1m30s")
    assert result.exit_code == 1
    assert "did not answer within 90 s: wait longer with --timeout" in result.stderr


def test_an_unknown_shard_is_told_with_those_there_are(fleet: World) -> None:
    result = ctl(*fleet.at, "inspect-needs", "--shard", "s-9")
    assert result.exit_code == 2
    assert "there is no shard 's-9': there are s-1, s-2, s-3" in result.stderr


def test_a_fleet_without_shards_says_how_to_start_one() -> None:
    with serving(CannedCoordinator()) as address:
        result = ctl("--coordinator", address, "inspect-needs")
        assert result.exit_code == 1
        assert "start one with `bigfleet shard --coordinator-addr" in result.stderr
        screen = ctl("--coordinator", address, "status")
    assert screen.exit_code == 0
    assert "no shard has registered, so nothing is decided" in screen.stdout


@pytest.mark.parametrize("registered", ["", ":7780", "0.0.0.0:7780", "[::]:7780", "s-1"])
@pytest.mark.parametrize("command", ["inspect-needs", "list-machines", "pause"])
def test_a_shard_without_an_address_is_not_dialled(registered: str, command: str) -> None:
    coordinator = CannedCoordinator()
    coordinator.shards = [entry("s-1", registered)]
    with serving(coordinator) as address:
        result = ctl("--coordinator", address, command)
    assert result.exit_code == 1
    assert "shard s-1 registered " in result.stderr
    assert "--shard-addr HOST:PORT" in result.stderr


@pytest.mark.parametrize("registered", ["", ":7780"])
def test_doctor_dials_what_bigfleetctl_dials(registered: str) -> None:
    coordinator = CannedCoordinator()
    coordinator.shards = [entry("s-1", registered)]
    with serving(coordinator) as address:
        result = run("doctor", "--coordinator", address)
    assert result.exit_code == 1
    assert "Shard s-1: shard s-1 registered " in result.stdout
    assert "start it with --advertise-addr HOST:PORT" in result.stdout
