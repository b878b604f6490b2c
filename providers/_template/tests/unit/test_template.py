"""What the provider declares, and how its cloud's errors become classes."""

import re
from pathlib import Path

import pytest

from bigfleet_provider_template.errors import CloudError, classify
from bigfleet_provider_template.spec import SPEC
from bigfleet_providerkit import OptionError
from bigfleet_providerkit.options.help import option_table

FOLDER = Path(__file__).parents[2]
PAGES = FOLDER / "docs"
if not PAGES.exists():
    PAGES = FOLDER.parents[1] / "docs" / "providers" / FOLDER.name
OWN = set(SPEC.options.model_fields) - {"provider"}


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (CloudError(409, "out_of_stock", "none"), "OutOfCapacity"),
        (CloudError(403, "quota_exceeded", "20 of 20"), "QuotaExceeded"),
        (CloudError(429, "slow_down", "later", after=3.0), "Throttled"),
        (CloudError(401, "bad_token", "expired"), "Unauthorized"),
        (CloudError(404, "not_found", "i-1"), "HostLost"),
        (CloudError(400, "bad_image", "no such image"), "InvalidRequest"),
        (CloudError(500, "oops", "try again"), "Unavailable"),
    ],
)
def test_errors_become_classes(error: CloudError, line: str) -> None:
    known = classify(error)
    assert known is not None
    assert known.word == line


def test_an_unknown_error_is_left_to_the_kit() -> None:
    assert classify(KeyError("x")) is None


async def test_missing_credentials_are_named() -> None:
    with pytest.raises(OptionError, match="no credentials found"):
        await SPEC.credentials(SPEC.options())


def test_the_pages_are_there_and_agree_with_the_declarations() -> None:
    pages = {path.stem for path in PAGES.glob("*.md")}
    assert pages == {
        "index", "install", "configuration", "credentials", "pricing-and-interruption",
        "observability", "security", "troubleshooting", "certification",
    }  # fmt: skip
    page = (PAGES / "observability.md").read_text("utf-8")
    assert set(re.findall(r"\b[A-Z][a-z]+[A-Z][a-z]+\b", page)) == set(SPEC.call_names)
    page = (PAGES / "configuration.md").read_text("utf-8")
    base = set(SPEC.options.__mro__[1].model_fields) - {"provider"}  # type: ignore[attr-defined]
    for row in option_table(SPEC.options, lambda name: name not in base).splitlines()[2:]:
        assert row in page
