"""Runs the suite on one mutant, in the setting that the specification gives to mutants."""

import os
import shlex
import sys
from pathlib import Path

from bigfleet_conformance import Options, Report, Target, run
from bigfleet_conformance.registry import Capability, LaneName, all_behaviours
from mutantkit.registry import PATCHES, Patch
from reference.inprocess import InProcess

SMALL_LARGE = 4_000
BEYOND_65536 = 70_000
UNPATCHED = "NONE"
SUPPORT = Path(__file__).parent.parent


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


def of_tls(id: str) -> bool:
    """Whether a behaviour is about TLS."""
    return all_behaviours()[id].lane is LaneName.SECURE


async def judge(number: str, only: tuple[str, ...], *, large_seed: int = SMALL_LARGE) -> Report:
    """The report of the suite on one mutant, in this process wherever that will do."""
    wanted = options(only, large_seed=large_seed)
    if any(of_tls(id) for id in only):
        os.environ["PYTHONPATH"] = str(SUPPORT)
        # Read when the mutant's process imports grpc: TLS 1.2 is left without a usable cipher.
        os.environ["GRPC_SSL_CIPHER_SUITES"] = "PSK-AES128-CBC-SHA"
        command = shlex.join([sys.executable, "-m", "mutantkit", number])
        return await run(Target(command=command), wanted)
    patch = PATCHES.get(number, Patch())
    source = InProcess(provider_type=patch.provider, server_type=patch.server)
    return await run(Target(source=source), wanted)
