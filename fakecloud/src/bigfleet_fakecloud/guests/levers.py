"""How the stub hooks of guests end, as a test sets it.

    PATCH /_control/guests {"ref": "h-1", "kind": "configure", "ready_after": 0.5, "exit_code": 3,
                            "hang": false, "stderr": "no route to the API server", "times": 1}

`ref` and `kind` (configure or drain) default to all. `times` runs obey, then the usual end comes
back; without it the lever stays. The newest lever that fits wins.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from bigfleet_fakecloud.errors import ScriptError

KINDS = ("configure", "drain")


@dataclass(slots=True)
class Lever:
    """One setting; `times` counts down."""

    ref: str = "*"
    kind: str = "*"
    ready_after: float = 0.0
    exit_code: int = 0
    hang: bool = False
    stderr: str = ""
    times: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("*", *KINDS):
            raise ScriptError(f"kind of a lever is configure or drain, not {self.kind!r}")
        if not 0 <= self.exit_code <= 255:
            raise ScriptError(f"exit_code is from 0 to 255, not {self.exit_code}")
        if not self.ready_after >= 0:
            raise ScriptError(f"ready_after is a number of seconds, not {self.ready_after}")

    @staticmethod
    def parse(values: Mapping[str, object]) -> "Lever":
        """From the body of a control call."""
        for name, value in values.items():
            allowed = _TYPES.get(name)
            if allowed is None:
                raise ScriptError(f"a lever has no {name!r}; it has {', '.join(_TYPES)}")
            wrong = isinstance(value, bool) and name != "hang"
            if wrong or not isinstance(value, allowed):
                raise ScriptError(f"{name} of a lever cannot be {value!r}")
        # The types were checked above.
        return Lever(**cast("dict[str, Any]", dict(values)))


_TYPES: dict[str, tuple[type, ...]] = {
    "ref": (str,), "kind": (str,), "ready_after": (int, float), "exit_code": (int,),
    "hang": (bool,), "stderr": (str,), "times": (int, type(None)),
}  # fmt: skip


class Levers:
    """All levers of a cloud's guests. `usual` is how long a hook takes without one."""

    def __init__(self) -> None:
        self._levers: list[Lever] = []

    def set(self, lever: Lever) -> None:
        """Let a lever act; it wins over the earlier ones."""
        self._levers.append(lever)

    def clear(self) -> None:
        """Take all levers back."""
        self._levers.clear()

    def find(self, ref: str, kind: str) -> Lever | None:
        """The lever that acts on the next run of a hook."""
        for lever in reversed(self._levers):
            if lever.ref in ("*", ref) and lever.kind in ("*", kind) and lever.times != 0:
                return lever
        return None

    def count(self, lever: Lever) -> None:
        """One run obeyed it."""
        if lever.times is not None:
            lever.times -= 1
