"""Only whole certificates are kept, without the evidence of passed rows and with a command."""

import json
from pathlib import Path

import pytest

import store_report
from bigfleet_conformance import Options, Target, run
from bigfleet_conformance.report.files import write
from bigfleet_conformance.report.verify import complaints
from reference.inprocess import InProcess

PACE = Options(settle_s=5.0, soak_s=1.0, scale_seed=300, large_seed=300, port=0)


async def a_report(folder: Path, options: Options = PACE, version: str = "1.2") -> Path:
    source = InProcess()
    target = Target(source=source, name="bigfleet-provider-x", version=version)
    report = await run(target, options)
    write(report.document, folder)
    return folder


async def test_a_certificate_lies_by_its_versions_and_can_be_repeated(tmp_path: Path) -> None:
    made = await a_report(tmp_path / "out")
    kept = store_report.store(made, tmp_path)
    suite = json.loads((made / "report.json").read_text("utf-8"))["suite"]["version"]
    assert kept == tmp_path / "conformance" / "reports" / suite / "x" / "1.2"
    assert complaints(kept) == []
    stored, full = (
        json.loads((folder / "report.json").read_text("utf-8")) for folder in (kept, made)
    )
    assert stored["digest"] == full["digest"]
    assert any(row["evidence"] for row in full["behaviors"])
    for short, long in zip(stored["behaviors"], full["behaviors"], strict=True):
        assert short["evidence"] == []
        assert {**short, "evidence": long["evidence"]} == long
    text = (kept / "README.md").read_text("utf-8")
    assert "## Reproduce" in text
    assert "CERTIFIED" in text


async def test_what_is_no_certificate_is_refused(tmp_path: Path) -> None:
    quick = await a_report(tmp_path / "quick", Options(quick=True, settle_s=5.0, port=0))
    with pytest.raises(store_report.CannotStoreError, match="is not a certificate: INCOMPLETE"):
        store_report.store(quick, tmp_path)
    (quick / "badge.json").write_text("{}")
    with pytest.raises(store_report.CannotStoreError, match="badge"):
        store_report.store(quick, tmp_path)
    assert not (tmp_path / "conformance").exists()


def test_a_run_over_http_lies_below_the_one_in_memory() -> None:
    document = {
        "suite": {"version": "0.1.0"},
        "provider": {"name": "bigfleet-provider-aws", "version": "2.0"},
        "substrate": "http",
    }
    assert store_report.place_of(document) == Path("0.1.0/aws/2.0/http")
