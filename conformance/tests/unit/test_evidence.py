"""Evidence stays small and says nothing it should not."""

from bigfleet_conformance.harness.evidence import MOST_ENTRIES, Entry, Evidence, short


def test_the_newest_entries_stay() -> None:
    evidence = Evidence()
    for n in range(MOST_ENTRIES + 5):
        evidence.note(Entry(float(n), "Create"))
    assert len(evidence.entries) == MOST_ENTRIES
    assert evidence.entries[-1].time_s == MOST_ENTRIES + 4


def test_a_poll_is_one_line_until_something_changes() -> None:
    evidence = Evidence()
    for state in ("IDLE", "IDLE", "IDLE", "CONFIGURED", "CONFIGURED"):
        evidence.note_read(Entry(0.0, "Get", machine="m", code="OK", state=state))
    assert [entry.state for entry in evidence.entries] == ["IDLE", "CONFIGURED"]


def test_long_values_become_length_and_hash() -> None:
    assert short("x" * 64) == "x" * 64
    assert short("x" * 65).startswith("65 bytes, sha256 ")


def test_empty_fields_are_left_out() -> None:
    assert Entry(1.23456, "List", code="OK").as_json() == {
        "time_s": 1.2346,
        "method": "List",
        "code": "OK",
    }
