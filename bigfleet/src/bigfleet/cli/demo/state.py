"""Whether a data folder can be gone on with: the form of its state is written into it.

The form changes when an older folder would be misread. A folder of another form is refused before
anything starts, with what to do; nothing in it is touched.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bigfleet.cli.errors import FailureError, InputError

FORM: Final = "1"
_NAME: Final = "form"


def take_folder(folder: Path) -> None:
    """Make the folder, or make sure that what is in it can be read."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark = folder / _NAME
        found = mark.read_text("utf-8").strip() if mark.exists() else FORM
        if found != FORM:
            raise InputError(
                f"{folder} holds state of form {found[:20]!r}, and this version reads form {FORM}: "
                "move it away, or choose another --data-dir"
            )
        mark.write_text(f"{FORM}\n", "utf-8")
    except OSError as error:
        raise FailureError(f"{folder}: {error.strerror}; choose another --data-dir") from None
