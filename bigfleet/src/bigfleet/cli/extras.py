"""What an installation lacks: packages that one component alone needs are extras of bigfleet."""

from __future__ import annotations

from importlib.util import find_spec

from bigfleet.cli.errors import FailureError

ENGINE = ("numpy", "numba")
KUBERNETES = ("aiohttp",)


def missing(*packages: str) -> str:
    """The first of these packages that is not installed; empty where all are."""
    return next((package for package in packages if find_spec(package) is None), "")


def require(command: str, extra: str, *packages: str) -> None:
    """Refuse to go on where a package is missing that an extra of the distribution brings."""
    if lacking := missing(*packages):
        raise FailureError(
            f"{command} needs the package {lacking}, which is not installed: "
            f"pip install 'bigfleet[{extra}]'"
        )
