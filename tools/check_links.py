"""`make docs`: every relative link in our Markdown leads to a file, and its anchor to a heading.

Addresses on the web are not visited: a check must not depend on another server.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
FENCE = re.compile(r"^\s*(```|~~~)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
INLINE_CODE = re.compile(r"`[^`]*`")
EXTERNAL = re.compile(r"^[a-z][a-z0-9+.-]*:")


def documents(root: Path) -> list[Path]:
    """The Markdown files of the repository, new ones included."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]
    listing = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return [path for name in listing.split("\0") if name and (path := root / name).is_file()]


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines outside fenced code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchor(heading: str) -> str:
    """The anchor under which a heading can be reached, as code hosts make it."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")


def anchors(text: str) -> set[str]:
    """All anchors of a document; a repeated heading gets a number."""
    seen: dict[str, int] = {}
    found = set()
    for _, line in prose(text):
        match = HEADING.match(line)
        if match is None:
            continue
        name = anchor(match.group(1))
        count = seen.get(name, 0)
        seen[name] = count + 1
        found.add(f"{name}-{count}" if count else name)
    return found


def broken_links(document: Path) -> Iterator[str]:
    """One line for every link of a document that leads nowhere."""
    for number, line in prose(document.read_text(encoding="utf-8")):
        for target in LINK.findall(INLINE_CODE.sub("", line)):
            if EXTERNAL.match(target):
                continue
            name, _, fragment = target.partition("#")
            path = (document.parent / name) if name else document
            if not path.exists():
                yield f"{document}:{number}: {target}: no such file"
            elif fragment and path.suffix == ".md" and fragment not in anchors(path.read_text()):
                yield f"{document}:{number}: {target}: no such heading"


def main() -> int:
    """Print the broken links; 1 if there is one."""
    pages = documents(ROOT)
    found = [line for page in pages for line in broken_links(page)]
    for line in found:
        print(line.replace(f"{ROOT}/", ""), file=sys.stderr)
    print(f"links: {len(found)} broken in {len(pages)} documents")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
