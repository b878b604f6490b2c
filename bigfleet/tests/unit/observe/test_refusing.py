"""A wrong setting is told in plain words, with what was given and what to write instead."""

import pytest

from bigfleet.observe.settings import SettingsError
from bigfleet.shard.server.settings import ShardSettings


@pytest.mark.parametrize(
    ("field", "given", "words"),
    [
        ("workers", "abc", "--workers: 'abc' is not a whole number"),
        ("workers", "0", "--workers: '0' is too small: use 1 or more"),
        ("reclaim_cap", "x", "--reclaim-cap: 'x' is not a number"),
        ("reclaim_cap", "2", "--reclaim-cap: '2' is too large: use 1 or less"),
        ("dry_run", "maybe", "--dry-run: 'maybe' is neither true nor false"),
        ("log_format", "xml", "--log-format: 'xml' is unknown: use 'text' or 'json'"),
        ("provider_addr", 5, "--provider-addr: 5 is not a list"),
    ],
)
def test_a_refusal_is_a_sentence(field: str, given: object, words: str) -> None:
    with pytest.raises(SettingsError) as refused:
        ShardSettings.load({"shard_id": "s-1", field: given})
    assert str(refused.value) == words
