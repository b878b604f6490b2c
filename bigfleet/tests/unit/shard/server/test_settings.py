"""A shard's settings: defaults as promised, values as its parts take them."""

from pathlib import Path

import pytest

from bigfleet.decision import Policy
from bigfleet.decision.policy import SECOND
from bigfleet.provider import ProviderSite
from bigfleet.shard.server.settings import SettingsError, ShardConfig, ShardSettings, provider_site
from bigfleet.wire.rollup_limits import RollUpLimits
from bigfleet.wire.tls import TlsFiles


def load(**flags: object) -> ShardSettings:
    return ShardSettings.load({"shard_id": "shard-a", **flags})


def test_an_id_is_all_that_is_needed() -> None:
    settings = load()
    assert (settings.listen, settings.metrics_addr) == ("127.0.0.1:7780", "127.0.0.1:8780")
    assert settings.tuning() == ShardConfig("shard-a", address="127.0.0.1:7780")
    assert settings.tuning().policy == Policy()
    assert settings.tls_files() is None


def test_defaults_are_those_of_the_manual() -> None:
    defaults = {flag.name: flag.default for flag in ShardSettings.flags()}
    promised = {
        "--cycle-interval": "10s",
        "--min-cycle-gap": "200ms",
        "--execute-concurrency": "64",
        "--max-actions-per-cycle": "8192",
        "--reclaim-cap": "0.05",
        "--quarantine-fraction": "0.1",
        "--quarantine-time": "1m",
        "--max-rows-per-cluster": "20000",
        "--max-requirement-sets-per-cluster": "2000",
        "--max-bytes-per-cluster": "67108864",
        "--outbox-size": "8192",
        "--metrics-warmup-cycles": "0",
        "--max-dollars-per-hour": "",
        "--log-format": "text",
    }
    assert {name: defaults[name] for name in promised} == promised
    switches = {flag.name for flag in ShardSettings.flags() if flag.is_switch}
    assert switches == {
        "--pause", "--dry-run", "--phase-attribution-log", "--allow-plaintext",
        "--allow-plaintext-pages",
    }  # fmt: skip
    repeated = {flag.name for flag in ShardSettings.flags() if flag.is_repeatable}
    assert repeated == {"--provider-addr", "--coordinator-addr"}
    assert all(flag.meaning for flag in ShardSettings.flags())


def test_settings_reach_the_parts() -> None:
    tuning = load(
        provider_addr=["aws=host:9001@eu-1", "other:9001"],
        coordinator_addr=["c-1:7790", "c-2:7790"],
        cycle_interval="5s",
        reclaim_cap="0.2",
        max_dollars_per_hour="12.5",
        workers="2",
        execute_concurrency="256",
        dry_run=True,
        epoch="9",
        reclaim_hold="1m",
        quarantine_rows="5",
        max_rows_per_cluster="7",
        max_requirement_sets_per_cluster="8",
        max_bytes_per_cluster="9",
        advertise_addr="shard-a.example:7780",
    ).tuning()
    assert tuning.providers == (
        ProviderSite("aws", "host:9001", "eu-1"),
        ProviderSite("other:9001", "other:9001", ""),
    )
    assert tuning.coordinators == ("c-1:7790", "c-2:7790")
    assert tuning.cycle_interval == 5.0
    assert tuning.limits == RollUpLimits(7, 8, 9)
    assert (tuning.rails.cap_fraction, tuning.rails.dry_run) == (0.2, True)
    assert tuning.pool.concurrency == 256
    assert tuning.policy.spend_limit_micro == 12_500_000
    assert tuning.policy.reclaim_hold == 60 * SECOND
    assert tuning.policy.workers == 2
    assert tuning.quarantine.rows == 5
    assert tuning.epoch == 9
    assert tuning.address == "shard-a.example:7780"


def test_tls_is_all_three_files_or_none() -> None:
    files = load(tls_cert="c", tls_key="k", tls_ca="a").tls_files()
    assert files == TlsFiles(Path("c"), Path("k"), Path("a"))
    for part in ({"tls_cert": "c"}, {"tls_cert": "c", "tls_key": "k"}):
        with pytest.raises(SettingsError, match="--tls-ca"):
            load(**part)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"provider_addr": ["nowhere"]}, "--provider-addr"),
        ({"provider_addr": ["a=h:1", "a=h:2"]}, "twice"),
        ({"coordinator_addr": ["nowhere"]}, "--coordinator-addr"),
        ({"coordinator_addr": ["c:99999"]}, "--coordinator-addr: 'c:99999' is not an address"),
        (
            {"listen": "127.0.0.1"},
            "--listen: '127.0.0.1' is not an address: write host:port or :port",
        ),
        ({"listen": "127.0.0.1:http"}, "--listen"),
        ({"metrics_addr": "8780"}, "--metrics-addr: '8780' is not an address"),
        (
            {"advertise_addr": ":7780"},
            "--advertise-addr: ':7780' can be listened at but not dialled: write host:port",
        ),
        ({"reclaim_cap": "1.5"}, "--reclaim-cap"),
        ({"cycle_interval": "0s"}, "--cycle-interval"),
        ({"execute_concurrency": "0"}, "--execute-concurrency"),
        ({"epoch": "0"}, "--epoch"),
        ({"log_format": "xml"}, "--log-format"),
        ({"shard_id": ""}, "--shard-id"),
        ({"shard_id": "a b"}, "--shard-id: 'a b' is not an id"),
        ({"shard_id": "a/b"}, "--shard-id"),
        ({"shard_id": "a=b"}, "--shard-id"),
        ({"shard_id": "\n"}, "--shard-id"),
        ({"shard_id": "é"}, "--shard-id"),
        ({"shard_id": "a" * 254}, "--shard-id"),
    ],
)
def test_a_wrong_setting_is_named(flags: dict[str, object], named: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(**flags)
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("shard_id", ["s-1", "fleet-bigfleet-shard-0", "eu.1_A~b", "a" * 253])
def test_what_a_certificate_can_name_is_an_id(shard_id: str) -> None:
    assert load(shard_id=shard_id).shard_id == shard_id


def test_a_provider_is_called_like_its_address_unless_it_is_named() -> None:
    assert provider_site("h:1") == ProviderSite("h:1", "h:1", "")
    assert provider_site("n=h:1") == ProviderSite("n", "h:1", "")
    assert provider_site("h:1@r") == ProviderSite("h:1", "h:1", "r")
