"""Settings: flags before variables before a file, and refusals that name the wrong thing."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from bigfleet.observe.settings import (
    Duration,
    ProcessSettings,
    SettingsError,
    Texts,
    format_duration,
    parse_duration,
)


class Example(ProcessSettings):
    """A few settings of each kind."""

    name: str = Field(description="Who.")
    interval: Duration = Field(10.0, description="How often.")
    peer_addr: Texts = Field((), description="Whom.")
    loud: bool = Field(False, description="How.")
    count: int = Field(3, ge=1, description="How many.")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text("name: from-file\ninterval: 30s\npeer-addr: [a:1, b:2]\n")
    return path


def test_flags_come_before_variables_before_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIGFLEET_INTERVAL", "20s")
    monkeypatch.setenv("BIGFLEET_COUNT", "7")
    loaded = Example.load({"count": "9", "loud": None, "peer_addr": []}, file)
    assert (loaded.name, loaded.interval, loaded.count) == ("from-file", 20.0, 9)
    assert loaded.peer_addr == ("a:1", "b:2")
    assert loaded.loud is False


def test_the_file_may_be_named_by_a_variable(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIGFLEET_CONFIG", str(file))
    assert Example.load({}).name == "from-file"


def test_a_list_is_repeated_flags_or_a_text_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Example.load({"name": "x", "peer_addr": ["a:1", "b:2"]}).peer_addr == ("a:1", "b:2")
    monkeypatch.setenv("BIGFLEET_PEER_ADDR", "c:3, d:4")
    assert Example.load({"name": "x"}).peer_addr == ("c:3", "d:4")


def test_a_switch_can_be_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIGFLEET_LOUD", "true")
    assert Example.load({"name": "x"}).loud
    assert not Example.load({"name": "x", "loud": False}).loud


def refusal(flags: dict[str, object], file: Path | None = None) -> str:
    with pytest.raises(SettingsError) as refused:
        Example.load(flags, file)
    text = str(refused.value)
    assert "\n" not in text
    return text


def test_what_is_missing_is_named() -> None:
    assert refusal({}) == "--name is missing: give it, or BIGFLEET_NAME"


def test_an_unknown_key_is_named_with_what_was_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("name: x\nintervall: 3s\n")
    assert refusal({}, path) == (
        f"intervall is not a key of settings file {path}: did you mean interval?"
    )
    assert refusal({"name": "x", "cuont": 1}) == "--cuont is not a flag: did you mean --count?"
    monkeypatch.setenv("BIGFLEET_INTERVALL", "3s")
    assert refusal({"name": "x"}) == (
        "BIGFLEET_INTERVALL is not a setting: did you mean BIGFLEET_INTERVAL?"
    )


def test_variables_of_kubernetes_and_of_others_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for link in (
        "BIGFLEET_SHARD_SERVICE_HOST",
        "BIGFLEET_SHARD_SERVICE_PORT_GRPC",
        "BIGFLEET_SHARD_PORT",
        "BIGFLEET_SHARD_PORT_7780_TCP_ADDR",
    ):
        monkeypatch.setenv(link, "tcp://10.0.0.1:7780")
    monkeypatch.setenv("BIGFLEET_CLUSTER_ID", "c-1")
    assert Example.load({"name": "x"}, foreign=["BIGFLEET_CLUSTER_ID"]).name == "x"


def test_a_wrong_value_is_named_with_where_it_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusal({"name": "x", "count": "0"}).startswith("--count: ")
    monkeypatch.setenv("BIGFLEET_INTERVAL", "soon")
    assert refusal({"name": "x"}) == (
        "BIGFLEET_INTERVAL: 'soon' is not a duration: write it like 10s, 200ms or 1m30s"
    )
    monkeypatch.delenv("BIGFLEET_INTERVAL")
    path = tmp_path / "settings.yaml"
    path.write_text("name: x\ncount: many\n")
    assert refusal({}, path).startswith(f"{path}: count: ")


@pytest.mark.parametrize("content", ["- a\n", "a: [", "just text"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(content)
    assert str(path) in refusal({"name": "x"}, path)


def test_a_missing_file_is_refused_and_an_empty_one_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    assert "cannot be read" in refusal({"name": "x"}, path)
    path.write_text("# nothing\n")
    assert Example.load({"name": "x"}, path).name == "x"


def test_flags_describe_themselves() -> None:
    flags = {flag.name: flag for flag in Example.flags()}
    assert list(flags) == ["--name", "--interval", "--peer-addr", "--loud", "--count"]
    assert flags["--interval"].default == "10s"
    assert flags["--interval"].meaning == "How often."
    assert flags["--loud"].is_switch
    assert flags["--peer-addr"].is_repeatable
    assert not flags["--count"].is_repeatable
    assert flags["--count"].default == "3"
    assert flags["--name"].default == ""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10.0), ("200ms", 0.2), ("1m30s", 90.0), ("2h", 7200.0), ("0.5s", 0.5), ("15", 15.0)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "10 s", "s", "-5s", "1d", "ten", "10sm", True, None])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["-1", "inf", "nan"])
def test_a_negative_or_endless_duration_is_refused(text: str) -> None:
    assert refusal({"name": "x", "interval": text}).startswith("--interval: ")


@given(st.integers(0, 10**7))
def test_a_duration_is_read_as_it_was_written(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, rel=1e-4)
