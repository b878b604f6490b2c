"""The profiles and substrates that are shipped, by name."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Final

from bigfleet_lab.profiles.errors import ProfileError
from bigfleet_lab.profiles.model import ScaleProfile
from bigfleet_lab.profiles.read_profile import read_profile
from bigfleet_lab.profiles.substrate import SubstrateSpec, read_substrate

_HERE: Final = Path(__file__).parent
PROFILES: Final = _HERE / "files"
SUBSTRATES: Final = _HERE / "substrates"


def names(folder: Path) -> list[str]:
    """What a folder offers."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def find(what: str, folder: Path, given: str) -> Path:
    """The file of a name, or the path that was given."""
    path = Path(given)
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return path
    known = names(folder)
    if given in known:
        return folder / f"{given}.yaml"
    close = get_close_matches(given, known, n=1)
    remedy = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(known)}"
    raise ProfileError(f"{what} {given!r}", f"there is none: {remedy}, or give a file")


def load_profile(given: str) -> ScaleProfile:
    """A profile by name or file."""
    return read_profile(find("profile", PROFILES, given))


def load_substrate(given: str) -> SubstrateSpec:
    """A substrate by name or file."""
    return read_substrate(find("substrate", SUBSTRATES, given))
