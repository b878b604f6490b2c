"""The command line: what a person types, and what comes back."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bigfleet_conformance.cli.main import main


def called(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["bigfleet-conformance", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_list_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(monkeypatch, "list", "--profile", "secure", "--output", "json") == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == ["B2011", "B2024"]


def test_list_of_an_area(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "list", "--area", "metadata") == 0
    assert "B505" in capsys.readouterr().out


def test_explain_says_why_how_and_what_it_finds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "explain", "b302") == 0
    shown = capsys.readouterr().out
    for part in ("Why:", "Steps:", "Passes:", "wire.md section 7.2", "M001", "--only B302"):
        assert part in shown


def test_explain_and_verify_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert called(monkeypatch, "explain", "B302", "--output", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["id"], told["finds"][0]["id"]) == ("B302", "M001")
    assert called(monkeypatch, "verify", str(tmp_path), "--output", "json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["whole"], bool(told["complaints"])) == (False, True)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("explain", "B999"), "there is no behaviour 'B999'"),
        (("list", "--profile", "gold"), "unknown profile 'gold'"),
        (("list", "--area", "gold"), "unknown area 'gold'"),
        (("list", "--output", "xml"), "--output is table, json or yaml"),
        (("run",), "exactly one of --target, --provider and --exec"),
        (("run", "--target", "a:1", "--tls-key", "k"), "TLS needs --tls-ca"),
        (("run", "--exec", "no-such-command-here"), "no executable"),
        (("run", "--target", "a:1", "--soak", "x"), "not a duration"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    complaint: str,
) -> None:
    assert called(monkeypatch, *words) == 2
    shown = capsys.readouterr().err
    assert complaint in shown
    assert "Traceback" not in shown


def test_an_unknown_flag_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "run", "--colour", "red") == 2
    assert "--colour" in capsys.readouterr().err


def test_verify_of_nothing_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "verify", "no-such-folder") == 1
    assert "lacks report.json" in capsys.readouterr().err


def test_the_version_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "--version") == 0
    assert capsys.readouterr().out.startswith("bigfleet-conformance ")


def test_the_plug_in_costs_other_test_runs_nothing() -> None:
    script = "import sys, bigfleet_conformance.plugin; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
