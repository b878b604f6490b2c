"""`python -m boards.write`: the boards as files of the chart; `--check` says whether they are."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from boards.fleet import FLEET
from boards.panels import Board

FOLDER = Path(__file__).parents[2] / "deploy" / "helm" / "bigfleet" / "files" / "dashboards"
BOARDS = (FLEET,)


def text_of(board: Board) -> str:
    """The file of a board."""
    return json.dumps(board.document(), indent=1) + "\n"


def stale() -> list[Path]:
    """Files that are not what the description says."""
    found = []
    for board in BOARDS:
        path = FOLDER / f"{board.uid}.json"
        if not path.is_file() or path.read_text("utf-8") != text_of(board):
            found.append(path)
    return found


def main(words: list[str]) -> int:
    """Write, or check."""
    if words == ["--check"]:
        for path in stale():
            print(f"{path.name} is not what tools/boards says: run python -m boards.write")
        return 1 if stale() else 0
    for board in BOARDS:
        (FOLDER / f"{board.uid}.json").write_text(text_of(board), "utf-8")
        print(f"wrote {board.uid}.json: {len(board.expressions())} queries")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
