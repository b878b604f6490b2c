"""Names of modules in heads, docstrings and comments."""

import pytest

from house.references import reference_findings

ROOM = "dist/src/fleet/act/__init__.py"
QUEUE = '''"""The queue: `Entry` by `Entry`; `workers` take from it."""


class Entry:
    """One entry."""
'''


def missing(head: str, extra: str = "", path: str = ROOM) -> list[str]:
    """Names that a head mentions and that do not exist, in a package with two modules."""
    sources = {
        "dist/src/fleet/__init__.py": '"""The fleet."""',
        ROOM: '"""The room."""',
        "dist/src/fleet/act/queue.py": QUEUE,
        "dist/src/fleet/act/workers.py": '"""The workers."""',
        path: f'"""{head}"""\n{extra}',
    }
    found = reference_findings(sources, sources)
    return [finding.text.split("'")[1] for finding in found]


def test_the_table_of_a_head_lists_modules_of_its_package() -> None:
    assert missing("Acts.\n\n    queue    what waits\n    workers  who works\n") == []
    assert missing("Acts.\n\n    waiting  what waits\n    workers  who works\n") == ["waiting"]
    assert missing("Acts.\n\nqueue, endings    what waits\n") == ["endings"]


@pytest.mark.parametrize("word", ["queue", "act", "helper", "limit", "str"])
def test_a_word_in_backticks_names_a_module_or_a_name_of_the_module(word: str) -> None:
    code = "def helper(limit: int) -> None: ..."
    assert missing(f"What happens is in `{word}`.", code, "dist/src/fleet/act/more.py") == []


def test_a_word_in_backticks_that_is_neither_is_found() -> None:
    text = "What an action does in `actions`, whose turn it is in `waiting`."
    assert missing(text, path="dist/src/fleet/act/more.py") == ["actions", "waiting"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See `queue.Entry`.", []),
        ("See `act.queue`, and (queue.Entry).", []),
        ("See `queue.Gone`.", ["queue.Gone"]),
        ("The host behind it (queue.Host).", ["queue.Host"]),
        ("A local variable `row.column` is left alone.", []),
    ],
)
def test_dotted_names_lead_to_a_name_in_a_module(text: str, expected: list[str]) -> None:
    code = f"# {text}\nPLACE = 1\n"
    assert missing("More.", code, "dist/src/fleet/act/more.py") == expected
    assert missing(text, path="dist/src/fleet/act/more.py") == expected


def test_whole_paths_of_the_distributions_are_followed() -> None:
    sources = {
        "bigfleet/src/bigfleet/__init__.py": '"""All: `model`, `decision`."""',
        "bigfleet/src/bigfleet/model.py": '"""Tried in bigfleet.decision.explanation."""',
        "bigfleet/src/bigfleet/decision.py": '"""Uses bigfleet.model."""',
    }
    (finding,) = reference_findings(sources, sources)
    assert "'bigfleet.decision.explanation'" in finding.text


def test_heads_of_the_control_plane_name_all_of_their_modules() -> None:
    sources = {
        "bigfleet/src/bigfleet/__init__.py": '"""All: `model`."""',
        "bigfleet/src/bigfleet/model.py": '"""Values."""',
        "bigfleet/src/bigfleet/errors.py": '"""Errors need no line."""',
        "bigfleet/src/bigfleet/wire.py": '"""Messages."""',
    }
    found = [finding.text for finding in reference_findings(sources, sources)]
    assert found == ["bigfleet/src/bigfleet/__init__.py: the head does not name wire"]
