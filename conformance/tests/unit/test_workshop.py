"""What the workshop adds to a boot."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bigfleet_conformance.errors import BootError
from bigfleet_conformance.registry import LaneName
from bigfleet_conformance.runner.source import BootPlan, Instance
from bigfleet_conformance.runner.workshop import Workshop


@dataclass
class Stopped:
    """An instance that never ran."""

    address: str = "127.0.0.1:1"
    boot_s: float = 0.0

    async def kill(self) -> None:
        return

    async def stop(self) -> int:
        return 0

    def alive(self) -> bool:
        return False

    def last_words(self) -> str:
        return ""

    def resident_bytes(self) -> int | None:
        return None


@dataclass
class Remembers:
    """A source that only keeps the plans."""

    name: str = "x"
    version: str = "1"
    command: str = "x"
    help: str = ""
    plans: list[BootPlan] = field(default_factory=list)

    async def boot(self, plan: BootPlan) -> Instance:
        self.plans.append(plan)
        return Stopped()


@pytest.mark.parametrize("over_http", [True, False])
async def test_over_http_every_instance_has_a_state_of_its_own(
    tmp_path: Path, over_http: bool
) -> None:
    source = Remembers()
    workshop = Workshop(source, None, tmp_path, over_http=over_http)
    for name in ("one", "two"):
        await workshop.boot_instance(BootPlan(LaneName.CORE, 0, 4, name=name))
    await workshop.boot_instance(BootPlan(LaneName.CORE, 0, 4, state=tmp_path / "given"))
    await workshop.close()
    *made, given = (plan.state for plan in source.plans)
    assert len(set(made)) == (2 if over_http else 1)
    assert all((state is not None) == over_http for state in made)
    assert given == tmp_path / "given"


async def test_a_process_that_ends_before_its_first_answer_refused_to_start(tmp_path: Path) -> None:
    workshop = Workshop(Remembers(), None, tmp_path)
    with pytest.raises(BootError) as caught:
        await workshop.boot(BootPlan(LaneName.CORE, 0, 8))
    assert caught.value.exit_code == 0
    await workshop.close()
