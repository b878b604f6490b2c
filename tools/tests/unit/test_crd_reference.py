"""The reference of the custom resources."""

from pathlib import Path

import crd_reference

CRDS = Path(__file__).parents[3] / "api" / "crd"


def test_the_page_is_what_the_crds_say() -> None:
    page = crd_reference.render(crd_reference.read(CRDS))
    assert crd_reference.PAGE.read_text(encoding="utf-8") == page


def test_every_field_has_a_meaning_and_every_rule_its_words() -> None:
    page = crd_reference.render(crd_reference.read(CRDS))
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows
    assert not [row for row in rows if row.endswith("|  |")]
    assert "| `requirements[].operator` | `In` or `NotIn`" in page
    assert "- `spec.resources.*`: a resource is a quantity of zero or more" in page
