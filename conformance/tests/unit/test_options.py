"""A run that makes no sense is refused before anything starts, with the name of what is wrong."""

from pathlib import Path

import pytest

from bigfleet_conformance import Options, Target
from bigfleet_conformance.cli.main import seconds, split
from bigfleet_conformance.errors import UsageError
from bigfleet_conformance.report.model import reproduce
from bigfleet_conformance.runner.process import duration
from bigfleet_conformance.runner.resolve import load_configuration


@pytest.mark.parametrize(
    "target",
    [Target(), Target(address="a:1", provider="x"), Target(provider="x", command="y")],
)
def test_exactly_one_source_is_given(target: Target) -> None:
    with pytest.raises(UsageError, match="exactly one of"):
        target.validate()


def test_a_target_has_a_port() -> None:
    with pytest.raises(UsageError, match="not host:port"):
        Target(address="somewhere").validate()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (Options(profiles=("gold",)), "unknown profile 'gold'"),
        (Options(profiles=()), "nothing would be required"),
        (Options(claims=("flight",)), "unknown capability 'flight'"),
        (Options(scope="half"), "--scope is full or base"),
        (Options(substrate="paper"), "--substrate is memory or http"),
        (Options(jobs=0), "--jobs is at least 1"),
        (Options(settle_s=0), "longer than 0"),
    ],
)
def test_bad_options_are_named(options: Options, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        options.validate(Target(provider="x"))


@pytest.mark.parametrize("profile", ["durable", "scale", "secure"])
def test_a_target_cannot_be_restarted(profile: str) -> None:
    with pytest.raises(UsageError, match="use --provider or --exec"):
        Options(profiles=(profile,)).validate(Target(address="a:1"))


def test_durations_are_read_and_written() -> None:
    assert seconds("90s") == 90
    assert seconds("2m") == 120
    assert seconds("500ms") == 0.5
    assert seconds("3") == 3
    assert duration(0.5) == "500ms"
    assert duration(2.0) == "2s"
    with pytest.raises(UsageError, match="not a duration"):
        seconds("soon")


def test_lists_may_be_repeated_or_separated() -> None:
    assert split(["core,cloud", "spot"]) == ("core", "cloud", "spot")


def test_the_command_that_repeats_a_run() -> None:
    options = Options(profiles=("core",), only=("B3*",), seed=7, settle_s=60)
    assert reproduce(Target(address="a:1"), options) == [
        "bigfleet-conformance run --target a:1 --profile core --only 'B3*' "
        "--settle-timeout 60s --seed 7"
    ]


def test_the_provider_s_own_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "conformance.yaml"
    path.write_text(
        "profiles: [core, cloud]\nclaims: [delete]\narguments: [--fast]\n"
        "environment: {A: b}\nhttp: {cloud: python -m x, args: ['--endpoint-url={endpoint}']}\n"
    )
    found = load_configuration(path)
    assert found.profiles == ("core", "cloud")
    assert found.args == ("--fast",)
    assert found.http_cloud == "python -m x"
    assert found.http_args == ("--endpoint-url={endpoint}",)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("colour: red", "unknown key colour"),
        ("http: {colour: red}", "unknown key http.colour"),
        ("- a", "is not a map"),
        ("claims: {a: b}", "claims is not a list"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "conformance.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=complaint):
        load_configuration(path)


def test_a_provider_without_a_file_has_the_defaults(tmp_path: Path) -> None:
    assert load_configuration(tmp_path / "none.yaml").profiles == ()
