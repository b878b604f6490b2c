"""Runs the suite on one mutant, in the setting that the specification gives to mutants."""

from bigfleet_conformance import Options, Report, Target, run
from bigfleet_conformance.registry import Capability
from mutantkit.registry import Patch
from reference.inprocess import InProcess

SMALL_LARGE = 4_000
BEYOND_65536 = 70_000


def options(only: tuple[str, ...], *, large_seed: int = SMALL_LARGE) -> Options:
    """Short waits, small inventories, every capability claimed."""
    return Options(
        profiles=("all",),
        claims=tuple(str(capability) for capability in Capability),
        only=only,
        settle_s=3.0,
        soak_s=2.0,
        scale_seed=2_000,
        large_seed=large_seed,
        loss_window_s=6.0,
        interrupted_s=3.0,
        port=0,
        jobs=24,
    )


async def judge(patch: Patch, only: tuple[str, ...], *, large_seed: int = SMALL_LARGE) -> Report:
    """The report of the suite on one patched provider."""
    source = InProcess(provider_type=patch.provider, server_type=patch.server)
    return await run(Target(source=source), options(only, large_seed=large_seed))
