"""Property 10: the plan does not depend on the order of rows, on workers or on the process."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import plan_digests
from bigfleet.decision import Engine, concurrency
from compare import fast_plan
from plan_digests import digest, digest_of
from seen import mixed_case, seen
from sizes import chunks, label, many

seeds = pytest.mark.parametrize("seeds", chunks(250, 50_000, 40, everything=1_000), ids=label)


def known(seed: int) -> str:
    """The digest of the plan that a single worker made in this process."""
    return digest(seen(seed).plan, seen(seed).case.needs)


@pytest.mark.parametrize("workers", [2, 4, 8])
@pytest.mark.parametrize("seeds", chunks(37, 10_000, 10, everything=150), ids=label)
def test_any_number_of_workers_gives_the_plan_of_one(
    seeds: range, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in seeds:
        # So short that small fleets, too, are shared among workers over several rounds.
        monkeypatch.setattr(concurrency, "_STRETCH", 1 + seed % 3)
        assert digest_of(seed, workers) == known(seed), seed


@seeds
def test_the_order_of_machines_and_needs_in_the_input_does_not_matter(seeds: range) -> None:
    for seed in seeds:
        case, rng = mixed_case(seed), Random(seed)
        machines, needs = list(case.machines), list(case.needs)
        rng.shuffle(machines)
        rng.shuffle(needs)
        shuffled = replace(case, machines=machines, needs=needs)
        assert digest(fast_plan(shuffled), needs) == known(seed), seed


def test_an_engine_that_decided_other_fleets_before_decides_as_a_new_one() -> None:
    engine = Engine()
    for seed in range(many(40, 2_000, 30, everything=150)):
        case = mixed_case(seed)
        assert digest(fast_plan(case, engine=engine), case.needs) == known(seed), seed


@pytest.mark.parametrize("hash_seed", ["1", "4242"])
def test_another_process_with_other_hashes_gives_the_same_plans(hash_seed: str) -> None:
    last = many(30, 2_000, 10, everything=100)
    support = Path(plan_digests.__file__)
    path = os.pathsep.join([str(support.parent), *filter(None, sys.path)])
    asked = subprocess.run(
        [sys.executable, str(support), "0", str(last)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert asked.stdout.split() == [known(seed) for seed in range(last)]
