"""NOTICE names every locked package whose licence is not permissive, and no other.

The licences are those that the installed packages state; SDKs of clouds are checked where
`make providers-setup` has installed them, which CI does.
"""

import re
from collections.abc import Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCKED = re.compile(r"^([A-Za-z0-9_.-]+)==", re.MULTILINE)
ROW = re.compile(r"^    (\S+) +\S", re.MULTILINE)
NOT_PERMISSIVE = re.compile(r"GPL|MPL|EPL|CDDL|EUPL|Mozilla|General Public|Eclipse|Proprietary")
PERMISSIVE = re.compile(r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Zlib|UPL|CC0|Unlicense")


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> set[str]:
    locks = (ROOT / "requirements").glob("*.lock")
    return {plain(name) for lock in locks for name in LOCKED.findall(lock.read_text("utf-8"))}


def stated(found: Distribution) -> str:
    """What a package says of its licence; only the first line of one that is a whole text."""
    about = found.metadata
    classifiers = [c for c in about.get_all("Classifier") or [] if c.startswith("License ::")]
    texts = [*(about.get_all("License-Expression") or []), *(about.get_all("License") or [])]
    return " ".join([*(text.partition("\n")[0] for text in texts), *classifiers])


def licences() -> Mapping[str, str]:
    return {plain(found.metadata["Name"]): stated(found) for found in distributions()}


def to_be_named(words: str) -> bool:
    return bool(NOT_PERMISSIVE.search(words)) or not PERMISSIVE.search(words)


def test_every_licence_that_is_not_permissive_is_in_the_notice() -> None:
    named = {plain(name) for name in ROW.findall((ROOT / "NOTICE").read_text("utf-8"))}
    installed = {name: words for name, words in licences().items() if name in locked()}
    assert len(installed) > 60
    missing = {name: words for name, words in installed.items() if to_be_named(words)}
    assert not missing.keys() - named, missing
    assert not {name for name in named if name in installed and name not in missing}


def test_the_notice_names_locked_packages_only() -> None:
    named = {plain(name) for name in ROW.findall((ROOT / "NOTICE").read_text("utf-8"))}
    assert named
    assert not named - locked()


def test_licences_are_told_apart() -> None:
    assert to_be_named("LGPL-2.1-or-later")
    assert to_be_named("EPL-2.0 OR GPL-2.0-or-later")
    assert to_be_named("")
    assert not to_be_named("Apache-2.0 OR BSD-3-Clause")
