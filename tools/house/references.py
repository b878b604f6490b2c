"""Module names in heads, docstrings and comments: each names a module that exists.

A rename moves the file and its imports; sentences keep the old name and send a reader to a file
that is not there. Checked are

    the lines of a package head that begin with names, a gap and a text: modules or rooms of it;
    the head of a package of the control plane names all of them
    a word in backticks in the head of a module or package: a module, a room, or a name used there
    `module.name`, and a whole path such as `bigfleet.model`, in any docstring or comment
"""

import ast
import builtins
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from house.findings import Finding
from house.sizes import PRODUCT

# Words in backticks that name something outside of the code: programs, keys of other systems.
_OUTSIDE = """
a bigfleetctl ca configure exec extra head id inspect leftovers make readonly test
"""
OUTSIDE = frozenset(_OUTSIDE.split())
GENERATED = re.compile(r"_pb2(_grpc)?$")
_ENTRY = re.compile(r"^\s*([a-z_]+(?:, [a-z_]+)*)(?:\s{2,}|: )\S")
_WORD = re.compile(r"(?<!`)`([a-z][a-z_]*)`(?!`)")
_DOTTED = re.compile(r"[`(]([a-z_]+(?:\.[a-z_]+)*)\.([A-Za-z_]+)[`)]")
_PATH = re.compile(r"\bbigfleet\w*(?:\.[a-z_]+)+\b(?!\.\w|/|\()")


def _module(path: str) -> tuple[str, ...]:
    """The dotted name of a source file, in parts."""
    parts = PurePosixPath(path.split("/src/")[-1]).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def _is_head(path: str) -> bool:
    return path.endswith("/__init__.py")


def names_in(tree: ast.AST) -> set[str]:
    """Names that a module defines, imports, or writes as a short text of its own."""
    found = set(dir(builtins))
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.arg(arg=name) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.Assign():
                found |= {to.id for to in node.targets if isinstance(to, ast.Name)}
            case ast.alias():
                found.add((node.asname or node.name).split(".")[0])
            case ast.Constant(value=str(text)) if text.isidentifier():
                found.add(text)
    return found


@dataclass
class Catalogue:
    """Which modules there are, by their last name, and which names each of them has."""

    modules: dict[str, set[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(set))
    names: dict[tuple[str, ...], set[str]] = field(default_factory=dict)
    everywhere: set[str] = field(default_factory=set)

    def add(self, path: str, tree: ast.AST) -> None:
        """Enter one source file; a generated module may be entered with an empty tree."""
        parts = _module(path)
        for end in range(1, len(parts) + 1):
            self.modules[parts[end - 1]].add(parts[:end])
        self.names[parts] = names_in(tree)
        self.everywhere |= {name for name in self.names[parts] if "_" in name}

    def below(self, package: tuple[str, ...]) -> set[str]:
        """Names of a package's modules, and all names that they have."""
        inside = [parts for parts in self.names if parts[: len(package)] == package]
        return {parts[-1] for parts in inside}.union(*(self.names[parts] for parts in inside))

    def children(self, package: tuple[str, ...]) -> set[str]:
        """The modules and rooms that lie in a package itself."""
        depth = len(package)
        return {p[depth] for p in self.names if len(p) > depth and p[:depth] == package}

    def has(self, parts: tuple[str, ...]) -> bool:
        """Whether `a.b.c` is the end of a module's dotted name, or a name in such a module."""
        return self._ends(parts) or any(
            parts[-1] in self.below(module)
            for module in self.modules.get(parts[-2], ())
            if module[-len(parts) + 1 :] == parts[:-1]
        )

    def _ends(self, parts: tuple[str, ...]) -> bool:
        return any(module[-len(parts) :] == parts for module in self.modules.get(parts[-1], ()))

    def starts_in(self, parts: tuple[str, ...], path: str) -> bool:
        """Whether the first part is a module of the same distribution, and not a variable."""
        top = _module(path)[0]
        return any(module[0] == top for module in self.modules.get(parts[0], ()))


def _texts(text: str, tree: ast.Module) -> Iterator[str]:
    """Every docstring and comment of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def _missing_entries(path: str, head: str, known: Catalogue) -> Iterator[str]:
    """Names that the table of a package head lists and the package does not have."""
    package = _module(path)
    children = known.children(package)
    for line in head.splitlines():
        entry = _ENTRY.match(line)
        names = entry[1].split(", ") if entry else []
        if line.startswith(" ") or "  " in line.strip():
            yield from (name for name in names if name not in children | known.below(package))


def _missing_words(path: str, head: str, known: Catalogue) -> Iterator[str]:
    """Words in backticks in a head that name neither a module nor a name of the module."""
    parts = _module(path)
    here = known.below(parts) if _is_head(path) else known.names[parts]
    for word in _WORD.findall(head):
        is_known = word in here or word in OUTSIDE or known.modules.get(word)
        if not is_known and word not in known.everywhere:
            yield word


def _missing_paths(path: str, text: str, tree: ast.Module, known: Catalogue) -> Iterator[str]:
    """Dotted names in docstrings and comments that lead nowhere."""
    for part in _texts(text, tree):
        for modules, name in _DOTTED.findall(part):
            parts = (*modules.split("."), name)
            if known.starts_in(parts, path) and not known.has(parts):
                yield ".".join(parts)
        for dotted in _PATH.findall(part):
            parts = tuple(dotted.split("."))
            if known.modules.get(parts[0]) and not known.has(parts):
                yield dotted


def _omitted(path: str, head: str, known: Catalogue) -> Iterator[str]:
    """Modules of a package of the control plane that its head does not name."""
    if path.startswith(PRODUCT):
        children = known.children(_module(path))
        public = {c for c in children if not c.startswith("_") and not GENERATED.search(c)}
        yield from sorted(c for c in public - {"errors"} if not re.search(rf"\b{c}\b", head))


def reference_findings(
    sources: Mapping[str, str], everything: Mapping[str, str]
) -> Iterator[Finding]:
    """References to modules that do not exist. `everything` has generated modules as well."""
    known = Catalogue()
    trees = {path: ast.parse(text) for path, text in sources.items()}
    for path, text in everything.items():
        known.add(path, trees.get(path) or ast.parse(text))
    for path, tree in sorted(trees.items()):
        head = ast.get_docstring(tree) or ""
        missing = [*_missing_words(path, head, known)]
        missing += _missing_paths(path, sources[path], tree, known)
        if _is_head(path):
            missing += _missing_entries(path, head, known)
            for name in _omitted(path, head, known):
                yield Finding("reference", path, f"{path}: the head does not name {name}")
        for name in dict.fromkeys(missing):
            text = f"{path}: names {name!r}, which does not exist; write the present name"
            yield Finding("reference", path, text)
