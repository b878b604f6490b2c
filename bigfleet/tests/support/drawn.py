"""Cases from the laboratory's wide generator of fleet shapes, small enough for the oracle."""

from __future__ import annotations

from random import Random

from bigfleet_lab.simulate.drawn_fleets import draw_fleet
from bigfleet_lab.simulate.fleet_shapes import draw_shape
from fleets import Case


def drawn_case(seed: int) -> Case:
    """The case of a seed: 8 to 70 machines, up to 24 rows."""
    rng = Random(seed)
    shape = draw_shape(seed, rng.randint(8, 70), rng.randint(2, 24))
    fleet = draw_fleet(shape)
    return Case(fleet.machines, fleet.needs, fleet.facts, fleet.policy, set(fleet.cooling))
