"""Wording that the pages, strings, comments and docstrings do not use.

Each pattern comes with what to write instead. A reader at 3 a.m. whose first language may not be
English should understand every sentence at once: name the actor, use ordinary words.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from house.findings import Finding

# Between two words: spaces, or a line's end with what a comment, a quote or a string begins with.
GAP = r"""[\s#*>/"']+"""
_SUFFIXES = """
.py .pyi .md .toml .yaml .yml .js .html .css .proto .sh .j2 .tpl .txt .in .tf .svg
"""
SUFFIXES = frozenset(_SUFFIXES.split())
NAMED = {"Makefile", "Dockerfile", "run"}
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")
NOT_OURS = re.compile(r"/static/vendor/|^conformance/reports/|^requirements/|^LICENSE$")
# These files quote the wording in order to forbid it.
QUOTING = {"tools/house/phrases.py", "tools/tests/unit/test_house_phrases.py"}
# Sections that quote it, and entries of published releases.
QUOTED_SECTIONS = {
    "CONTRIBUTING.md": re.compile(r"^## Language\n.*?(?=^## )", re.MULTILINE | re.DOTALL),
    "CHANGELOG.md": re.compile(r"^## \[?\d.*\Z", re.MULTILINE | re.DOTALL),
}
# Titles of conformance rows are stored in reports and do not change.
FROZEN = (
    "A negative max_results is refused, or is no cap.",
    "A shard with rising sequence is never fenced, its first token for ever.",
)


def _is_no(match: re.Match[str]) -> bool:
    """Whether it is "X is no Y": not "there is no", "is no longer", "is no larger than"."""
    before = match.string[max(0, match.start() - 24) : match.start()]
    words = re.findall(r"[A-Za-z]+", before)
    if words and words[-1].lower() in {"there", "nor"}:
        return False
    after = match.string[match.end() : match.end() + 60]
    return not re.match(rf"(?:longer|more|less|later|earlier|\w+er{GAP}than)\b", after)


def _is_word(_match: re.Match[str]) -> bool:
    return True


def _is_a_person(match: re.Match[str]) -> bool:
    """Whether "nobody" is a person here, and not the user of that name."""
    around = match.string[max(0, match.start() - 30) : match.end() + 30].lower()
    return not re.search(r"\buid\b|65534|user[:= ]+.?nobody|\bnobody:", around)


def _word(words: str) -> re.Pattern[str]:
    """These words by themselves or between underscores of a name."""
    return re.compile(rf"(?<![A-Za-z])(?:{words})(?![A-Za-z])", re.IGNORECASE)


PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], bool], str], ...] = (
    (
        re.compile(rf"\b(?:is|are|was|were){GAP}no{GAP}(?=\w)", re.IGNORECASE),
        _is_no,
        'write "is not a ..."',
    ),
    (_word("nobody"), _is_a_person, "name who does not, or write the sentence in the positive"),
    (_word("somebody|whoever|whomever"), _is_word, "name the actor"),
    (_word("anew"), _is_word, 'write "again"'),
    (_word("mend|mends|mended|mending"), _is_word, 'write "fix"'),
    (_word("dear|dearer|dearest"), _is_word, 'write "expensive"'),
    (
        re.compile(rf"\bfor{GAP}ever\b|\b(?:hereof|thereof|wherefrom|whence)\b", re.IGNORECASE),
        _is_word,
        'write "forever", or say it in ordinary words',
    ),
)  # fmt: skip
# Participles that say nothing about what a value is; as verbs in a sentence they are fine.
VAGUE_IDENTIFIERS = {"told", "asked", "said", "heard"}


def is_checked(name: str) -> bool:
    """Whether a file of this path is written by us and read by people."""
    path = Path(name)
    if GENERATED.search(name) or NOT_OURS.search(name) or name in QUOTING:
        return False
    return path.suffix in SUFFIXES or path.name in NAMED


def _blanked(name: str, text: str) -> str:
    """The text with quoted sections and frozen titles blanked, so that line numbers stay."""
    section = QUOTED_SECTIONS.get(name)
    found = [match.group() for match in section.finditer(text)] if section else []
    for quoted in (*found, *FROZEN):
        text = text.replace(quoted, re.sub(r"[^\n]", " ", quoted))
    return text


def phrases_in(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Line number and complaint for every unwanted phrase of one file."""
    text = _blanked(name, text)
    for pattern, counts, remedy in PATTERNS:
        for match in pattern.finditer(text):
            if counts(match):
                line = text.count("\n", 0, match.start()) + 1
                words = " ".join(re.findall(r"[A-Za-z]+", match.group()))
                yield line, f'"{words}": {remedy}'


def _defined_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names that a module gives to variables, fields, parameters, functions and classes."""
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name, lineno=line):
                yield line, name
            case ast.Name(id=name, ctx=ast.Store(), lineno=line):
                yield line, name
            case ast.Attribute(attr=name, ctx=ast.Store(), lineno=line):
                yield line, name
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name


def identifiers_in(text: str) -> Iterator[tuple[int, str]]:
    """Line number and complaint for every name that is one of the vague participles."""
    for line, name in _defined_names(ast.parse(text)):
        if name.strip("_").lower() in VAGUE_IDENTIFIERS:
            yield line, f"the name {name!r}: say what the value is (request, reply, message)"


def phrase_findings(root: Path, names: Iterable[str]) -> Iterator[Finding]:
    """Unwanted wording in the files of a checkout, listed in the backlog by folder."""
    for name in names:
        if not is_checked(name):
            continue
        text = (root / name).read_text(encoding="utf-8")
        found = list(phrases_in(name, text))
        if name.endswith(".py"):
            found += identifiers_in(text)
        folder = Path(name).parent.as_posix()
        for line, complaint in sorted(found):
            yield Finding("phrase", folder, f"{name}:{line}: {complaint}")
