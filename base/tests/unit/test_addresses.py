"""Addresses: what can be listened at, what can be dialled, and where plaintext is allowed."""

from __future__ import annotations

import ipaddress
import random
import socket

import pytest

from bigfleet_base.addresses import (
    AddressError,
    Endpoint,
    bind_endpoint,
    can_dial,
    can_listen,
    check_plaintext,
    dialled,
    own_address,
    shard_address,
)

WILDCARDS = ["", "0.0.0.0", "[::]", "0", "0.0", "[::0]", "[::ffff:0.0.0.0]"]
LOOPBACKS = ["127.0.0.1", "localhost", "LOCALHOST", "localhost.", "127.1", "127.9.8.7", "[::1]",
             "[::ffff:127.0.0.1]"]  # fmt: skip
ELSEWHERE = ["10.0.0.5", "s-1", "shard.example.org", "[fd00::1]", "128.0.0.1", "host_1"]
NOT_ADDRESSES = ["", "7780", "s-1", "s-1:", ":x", ":99999", "s-1:-1", "a b:1", "http://s-1:1",
                 "::1:7780", "[s-1]:7780", "[::1:7780", "-a:1", "a\n:1", "a" * 300 + ":1", "*:1",
                 "s-1:\u0667", "\x00:1"]  # fmt: skip


@pytest.mark.parametrize("host", WILDCARDS)
def test_all_interfaces_can_be_listened_at_and_not_dialled(host: str) -> None:
    endpoint = Endpoint.parse(f"{host}:7780")
    assert endpoint.is_wildcard
    assert not endpoint.is_loopback
    assert can_listen(f"{host}:7780")
    assert not can_dial(f"{host}:7780")


@pytest.mark.parametrize("host", LOOPBACKS)
def test_loopback_is_known_by_address_and_by_name(host: str) -> None:
    assert Endpoint.parse(f"{host}:7780").is_loopback
    assert can_dial(f"{host}:7780")


@pytest.mark.parametrize("host", ELSEWHERE)
def test_other_hosts_are_neither_loopback_nor_wildcards(host: str) -> None:
    endpoint = Endpoint.parse(f"{host}:7780")
    assert (endpoint.is_loopback, endpoint.is_wildcard) == (False, False)
    assert dialled(str(endpoint)) == f"{host}:7780"


@pytest.mark.parametrize("text", NOT_ADDRESSES)
def test_what_is_not_an_address_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(AddressError, match="is not an address: write host:port") as refusal:
        Endpoint.parse(text)
    assert len(str(refusal.value)) < 200
    assert not can_listen(text)
    assert not can_dial(text)


def test_port_0_can_be_listened_at_and_not_dialled() -> None:
    assert can_listen("127.0.0.1:0")
    assert not can_dial("127.0.0.1:0")


def test_literal_addresses_are_judged_as_the_standard_library_judges_them() -> None:
    rng = random.Random(17)
    for _ in range(2_000):
        size = rng.choice([4, 16])
        packed = bytes(rng.choice([0, 0, 0, 1, 127, rng.randrange(256)]) for _ in range(size))
        literal = ipaddress.ip_address(packed)
        host = f"[{literal}]" if size == 16 else str(literal)
        mapped = literal.ipv4_mapped if isinstance(literal, ipaddress.IPv6Address) else None
        meant = mapped or literal
        endpoint = Endpoint.parse(f"{host}:1")
        assert endpoint.is_wildcard is meant.is_unspecified
        assert endpoint.is_loopback is meant.is_loopback
        assert Endpoint.parse(str(endpoint)) == endpoint


@pytest.mark.parametrize(
    ("advertised", "listen", "peers", "expected"),
    [
        ("s-1:7780", "127.0.0.1:7780", ["c-1:7790"], "s-1:7780"),
        ("s-1:7780", ":7780", [], "s-1:7780"),
        ("", "10.0.0.5:7780", ["c-1:7790"], "10.0.0.5:7780"),
        ("", "[fd00::1]:7780", ["c-1:7790"], "[fd00::1]:7780"),
        ("", ":7780", ["c-1:7790"], "box:7780"),
        ("", "0.0.0.0:7780", ["127.0.0.1:7790"], "box:7780"),
        ("", "127.0.0.1:7780", ["127.0.0.1:7790", "localhost:7791"], "127.0.0.1:7780"),
        ("", "127.0.0.1:7780", [], "127.0.0.1:7780"),
    ],
)
def test_a_process_is_dialled_where_it_advertises_or_is_bound_or_at_its_host_name(
    advertised: str, listen: str, peers: list[str], expected: str
) -> None:
    bound = Endpoint.parse(listen)
    assert own_address(advertised, bound, peers, "box", "this shard") == expected


@pytest.mark.parametrize(
    ("advertised", "listen", "peers", "host", "words"),
    [
        ("", "127.0.0.1:7780", ["127.0.0.1:1", "c-1:7790"], "box", "c-1:7790 is another machine"),
        ("localhost:7780", ":7780", ["c-1:7790"], "box", "give --advertise-addr HOST:PORT"),
        (":7780", "s-1:7780", [], "box", "':7780' can be listened at but not dialled"),
        ("[::]:7780", "s-1:7780", [], "box", "not dialled"),
        ("s-1:0", "s-1:7780", [], "box", "not dialled"),
        ("", ":7780", [], "", "--advertise-addr is missing"),
        ("", ":7780", ["c-1:7790"], "localhost", "c-1:7790 is another machine"),
    ],
)  # fmt: skip
def test_a_process_that_others_could_not_dial_is_refused(
    advertised: str, listen: str, peers: list[str], host: str, words: str
) -> None:
    with pytest.raises(AddressError) as refusal:
        own_address(advertised, Endpoint.parse(listen), peers, host, "this shard")
    assert words in str(refusal.value)


def test_a_registered_shard_is_dialled_where_it_said_and_never_guessed() -> None:
    assert shard_address("s-1", "s-1.example.org:7780", "--shard") == "s-1.example.org:7780"
    for registered in ("", ":7780", "0.0.0.0:7780", "s-1"):
        with pytest.raises(
            AddressError, match=r"shard s-1 registered .* --advertise-addr .* --shard HOST"
        ):
            shard_address("s-1", registered, "--shard")


@pytest.mark.parametrize("host", [*WILDCARDS, *ELSEWHERE])
def test_plaintext_for_other_machines_is_refused_with_the_flag_that_accepts_it(host: str) -> None:
    def check(*, has_tls: bool = False, allowed: bool = False) -> None:
        check_plaintext(
            f"{host}:7780", "--listen", has_tls=has_tls, allowed=allowed,
            allow_flag="--allow-plaintext", remedy="add --tls-cert",
        )  # fmt: skip

    with pytest.raises(AddressError) as refusal:
        check()
    assert f"--listen {host}:7780" in str(refusal.value)
    assert "--allow-plaintext" in str(refusal.value)
    check(has_tls=True)
    check(allowed=True)


@pytest.mark.parametrize("host", LOOPBACKS)
def test_plaintext_on_loopback_is_accepted(host: str) -> None:
    check_plaintext(
        f"{host}:7780", "--listen", has_tls=False, allowed=False, allow_flag="", remedy=""
    )


@pytest.mark.parametrize("listen", [":0", "127.0.0.1:0", "localhost:0", "0.0.0.0:0"])
def test_the_literal_to_bind_is_the_address_of_the_socket(listen: str) -> None:
    literal = bind_endpoint(Endpoint.parse(listen))
    family = socket.AF_INET6 if ":" in literal.host else socket.AF_INET
    with socket.socket(family) as bound:
        bound.bind((literal.host, 0))
        assert Endpoint.of_socket(bound.getsockname()).host == literal.host


def test_a_host_that_cannot_be_resolved_cannot_be_bound() -> None:
    with pytest.raises(AddressError, match=r"cannot listen on nowhere\.invalid:1"):
        bind_endpoint(Endpoint.parse("nowhere.invalid:1"))


def test_a_socket_s_mapped_address_is_shown_as_the_ipv4_address_it_is() -> None:
    assert str(Endpoint.of_socket(("::ffff:127.0.0.1", 7780, 0, 0))) == "127.0.0.1:7780"
    assert str(Endpoint.of_socket(("::", 7780, 0, 0))) == "[::]:7780"
