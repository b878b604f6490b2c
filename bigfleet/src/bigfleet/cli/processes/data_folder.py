"""The mark by which a demo's data folder is told from that of a fleet: neither opens the other's.

A demo writes the mark (`bigfleet_lab.demo.state`); commands of a fleet refuse a folder that has it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bigfleet.cli.errors import InputError

FORM_FILE: Final = "form"
"""A demo's folder has this file; it holds the form of the state beside it."""


def refuse_demo(folder: Path) -> None:
    """Raise when a demo keeps its state in this folder."""
    if (folder / FORM_FILE).exists():
        raise InputError(
            f"{folder} holds the state of a demo (`bigfleet demo`), and a fleet would go on with "
            "its clusters and machines: choose another --data-dir, or move it away"
        )
