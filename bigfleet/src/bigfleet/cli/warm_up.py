"""The engine made ready before a command decides with it: loaded, or compiled after an install."""

from __future__ import annotations

from bigfleet.cli.output import stage


def wake(*, quiet: bool = False) -> None:
    """Nothing after this waits for a compiler, and no time that is printed contains one."""
    with stage("Loading the engine", quiet=quiet):
        from bigfleet.engine_warm_up import is_warm, warm_up

        compiled = is_warm()
        if compiled:
            warm_up()
    if not compiled:
        with stage("Compiling the engine, once after an install: about a minute", quiet=quiet):
            warm_up()
