"""Names that come from outside: which are taken, and how a text of unknown length is shown.

A cluster, shard, provider or machine id ends up in log lines, labels of metrics, certificates and
files, so it is checked where it comes in, before anything is stored under it or said about it. The
characters and lengths of label keys and values, of resource names and of groups are Kubernetes' own
rules.

Every log line and error that repeats a text of a caller passes it through `shortened` (quoted) or
`cut` (as it is), so that one call writes a few hundred bytes however much it sent.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST_ID: Final = 253
LONGEST_TEXT: Final = 1024
"""Of a text that is only compared, as a group: the operator's own words for a gang."""
SHOWN: Final = 64
"""Characters of a name from outside that a log line or an error repeats."""
SHOWN_OF_ERRORS: Final = 1000
"""Characters of an error that another process reports."""
_LONGEST_NAME: Final = 63
_ID: Final = re.compile(r"[A-Za-z0-9._/:-]{1,253}")
_DOTS: Final = re.compile(r"(^|/)\.{1,2}(/|$)")
_WORD: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_DOMAIN: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class IdentifierError(ValueError):
    """A name from outside that is not taken; says which one and what is allowed."""


def check_id(value: str, what: str) -> str:
    """This id, or IdentifierError. `what` names the field, as in `cluster_id`."""
    if is_id(value):
        return value
    if not value:
        raise IdentifierError(f"{what} is empty: it is required")
    raise IdentifierError(
        f"{what} {shortened(value)} is not an id: use 1 to {LONGEST_ID} letters, digits, '-', '_', "
        "'.', '/' and ':', without a part that is '.' or '..'"
    )


def is_id(value: str) -> bool:
    """Whether this may be the id of a cluster, a shard, a provider or a machine."""
    return _ID.fullmatch(value) is not None and not _DOTS.search(value)


def check_label_key(value: str, what: str) -> str:
    """This label key or resource name, or IdentifierError: `name` or `domain/name`."""
    domain, slash, name = value.rpartition("/")
    has_domain = len(domain) <= LONGEST_ID and _DOMAIN.fullmatch(domain) is not None
    if _WORD.fullmatch(name) and (has_domain or not slash):
        return value
    raise IdentifierError(
        f"{what} {shortened(value)} is not a name by Kubernetes' rules: use up to {_LONGEST_NAME} "
        "letters, digits, '-', '_' and '.', behind an optional domain in lower case and '/'"
    )


def check_label_value(value: str, what: str) -> str:
    """This value of a label, or IdentifierError. An empty one is a value as well."""
    if not value or _WORD.fullmatch(value):
        return value
    raise IdentifierError(
        f"{what} {shortened(value)} is not a label's value by Kubernetes' rules: use up to "
        f"{_LONGEST_NAME} letters, digits, '-', '_' and '.', with a letter or digit at both ends"
    )


def check_text(value: str, what: str, longest: int = LONGEST_TEXT) -> str:
    """This text that is only compared, or IdentifierError: printable and not too long."""
    if len(value) > longest:
        raise IdentifierError(
            f"{what} {shortened(value)} is too long: use at most {longest} characters"
        )
    if _UNPRINTABLE.search(value):
        raise IdentifierError(f"{what} {shortened(value)} holds control characters: leave them out")
    return value


def shortened(text: str, most: int = SHOWN) -> str:
    """A text from outside, quoted, at most so long that it cannot fill a log."""
    if len(text) <= most:
        return repr(text)
    return f"{text[:most]!r}... ({len(text)} characters)"


def cut(text: str, most: int = SHOWN) -> str:
    """A text from outside as it is where it is short and printable, else as `shortened` shows it.

    For the values of log lines, where an ordinary id needs no quotes.
    """
    if len(text) <= most and not _UNPRINTABLE.search(text):
        return text
    return shortened(text, most)
