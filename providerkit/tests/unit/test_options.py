"""Options: three sources, every spelling, one-line complaints."""

import shlex
from pathlib import Path
from typing import Annotated

import pytest

from bigfleet_providerkit import KitOptions, Opt, OptionError
from bigfleet_providerkit.options.help import help_text, option_table
from bigfleet_providerkit.options.parse import parse_options
from bigfleet_providerkit.options.units import parse_duration, parse_size, write_duration


class CloudOptions(KitOptions):
    token: Annotated[str | None, Opt("secret", env=("CLOUD_TOKEN",), secret=True)] = None


def parsed(*argv: str, **environ: str) -> CloudOptions:
    return parse_options(CloudOptions, argv, environ)[0]


@pytest.mark.parametrize(
    "argv",
    [
        ("--addr=localhost:2",),
        ("--addr", "localhost:2"),
        ("-addr=localhost:2",),
        ("-addr", "localhost:2"),
    ],
)
def test_every_spelling_of_a_flag(argv: tuple[str, ...]) -> None:
    assert parsed(*argv).addr == "localhost:2"


def test_switches_stand_alone_or_with_a_value() -> None:
    assert parsed("--use-fake-backend").use_fake_backend
    assert parsed("-use-fake-backend=true").use_fake_backend
    assert not parsed("--use-fake-backend=false").use_fake_backend
    assert not parsed("--reflection=false").reflection


def test_flags_come_before_environment_and_environment_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("addr: file:1\nseed-count: 7\nslow_ms: 9\n")
    options = parsed(
        "--addr=localhost:1", f"--config={path}",
        BIGFLEET_PROVIDER_ADDR="env:1", BIGFLEET_PROVIDER_SEED_COUNT="5",
    )  # fmt: skip
    assert (options.addr, options.seed_count, options.slow_ms) == ("localhost:1", 5, 9)


def test_secrets_come_from_a_file_or_the_clouds_own_variable(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("from-file\n")
    assert parsed(f"--token-file={path}").token == "from-file"
    assert parsed(CLOUD_TOKEN="from-env").token == "from-env"
    assert parsed(BIGFLEET_PROVIDER_TOKEN_FILE=str(path)).token == "from-file"


def test_both_names_of_healing() -> None:
    assert parsed("--heal-after=2s").failed_cleanup_after == 2
    assert parsed("--failed-cleanup-after=10m").failed_cleanup_after == 600


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["--adr=x"], "unknown option adr; did you mean --addr?"),
        (["--seed-count=many"], "--seed-count 'many'"),
        (["--seed-count=-1"], "--seed-count '-1'"),
        (["--transition-timeout=soon"], "'soon' is not a duration"),
        (["--provider=UPPER"], "'UPPER' is not a label"),
        (["--tls-cert=a"], "add --tls-key and --tls-ca"),
        (["--orphans=keep"], "--orphans 'keep'"),
        (["--fail-rate=boom=1"], "boom=1.0 is not a rate"),
        (["--addr"], "--addr needs a value"),
        (["--config=/nowhere"], "--config /nowhere cannot be read"),
        (["--token-file=/nowhere"], "cannot be read"),
        (["--log-level=loud"], "--log-level 'loud'"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(argv: list[str], complaint: str) -> None:
    with pytest.raises(OptionError) as caught:
        parsed(*argv)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_key_of_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("sed-count: 7\n")
    with pytest.raises(OptionError, match="did you mean --seed-count"):
        parsed(f"--config={path}")


def test_a_wrong_secret_is_not_repeated() -> None:
    with pytest.raises(OptionError) as caught:
        parse_options(CloudOptions, ["--seed-count=x", "--token=hush"], {})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("--addr=9001", "write host:port"),
        ("--addr=127.0.0.1:99999", "a port up to 65535"),
        ("--metrics-addr=127.0.0.1:http", "write host:port"),
        ("--reserve=cpu=x", "'x' is not a Kubernetes quantity"),
        ("--reserve=disk=1Gi", "only cpu and memory"),
    ],
)
def test_what_would_only_show_later_is_refused_at_once(argument: str, complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        parsed(argument)
    assert (
        parsed("--metrics-addr=0", "--addr=127.0.0.1:0", "--reserve=cpu=100m").metrics_addr == "0"
    )


class NeedyOptions(CloudOptions):
    """A provider's own options, one of which has no default."""

    region: Annotated[str, Opt("region", "eu-west-9", env=("CLOUD_REGION",))]


def test_a_missing_option_is_named_with_its_remedy_and_nothing_else_that_was_given() -> None:
    with pytest.raises(OptionError) as caught:
        parse_options(NeedyOptions, ["--token=hush"], {})
    assert str(caught.value) == "--region or CLOUD_REGION is required; for example eu-west-9"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("2m", 120), ("1h30m", 5400), ("250ms", 0.25), ("7", 7), ("0.5", 0.5), ("0", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "1x", "m", "-5s", "1h 30m", "nan", "inf"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


def test_durations_and_sizes_are_written_and_read() -> None:
    assert [write_duration(s) for s in (300, 5400, 2, 0.5)] == ["5m0s", "1h30m0s", "2s", "0.5s"]
    assert (parse_size("8MiB"), parse_size("100"), parse_size(5)) == (8 * 1024**2, 100, 5)


def test_help_names_every_option_with_default_environment_and_example() -> None:
    text = help_text("bigfleet-provider-x", "X.", CloudOptions)
    for name in CloudOptions.model_fields:
        assert f"--{name.replace('_', '-')}" in text
        assert f"BIGFLEET_PROVIDER_{name.upper()}" in text
    assert "--failed-cleanup-after, --heal-after" in text
    assert "default: 2m0s" in text
    table = option_table(CloudOptions, lambda name: name == "token")
    assert "| `--token` | none | `BIGFLEET_PROVIDER_TOKEN`, `CLOUD_TOKEN` | secret |" in table


def test_every_example_of_the_help_is_one_command() -> None:
    _, _, rest = help_text("bigfleet-provider-x", "X.", CloudOptions).partition("Examples:\n")
    lines = rest.partition("\n\n")[0].splitlines()
    assert len(lines) == 4
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "bigfleet-provider-x"
        assert "|" not in words
        given = [word for word in words if word not in ("--yes", "--output", "json")]
        _, commands = parse_options(CloudOptions, given, {"BIGFLEET_PROVIDER_STATE": "memory"})
        assert set(commands) <= {"check", "inspect", "sweep"}


def test_services_may_have_addresses_of_their_own() -> None:
    both = KitOptions(endpoint_url="ec2=https://ec2.internal,https://all.internal")
    assert (both.endpoint("ec2"), both.endpoint("ssm")) == (
        "https://ec2.internal", "https://all.internal",
    )  # fmt: skip
    assert KitOptions().endpoint("ec2") is None
    with pytest.raises(ValueError, match="'ec2' is not an address"):
        KitOptions(endpoint_url="ec2")
