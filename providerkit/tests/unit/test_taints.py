"""Taints of offerings: in the record, in the hook's environment, and over changes and upgrades."""

from pathlib import Path

import pytest

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_providerkit import CapacityType, OptionError
from bigfleet_providerkit.machines.record import LABEL_TAINTS, shape_of
from bigfleet_providerkit.offerings.parse import Dialect, read_offerings
from bigfleet_providerkit.substrate import Host, HostCommand, HostResult
from kitworld import SPEC, world

DIALECT = Dialect((), (), (), frozenset({CapacityType.ON_DEMAND}))
GPU = "nvidia.com/gpu=present:NoSchedule"
ENTRY = "- {{instance_type: t-4, zone: zone-a, count: 1, taints: [{}], startup_taints: [{}]}}\n"


def test_taints_that_something_removes_later_are_apart_from_those_that_stay() -> None:
    text = ENTRY.format("'a=b:NoExecute'", "'c:NoSchedule'")
    (offering,) = read_offerings(text, DIALECT)
    assert (offering.taints, offering.startup_taints) == (("a=b:NoExecute",), ("c:NoSchedule",))
    with pytest.raises(OptionError, match="startup_taints is 'x'"):
        read_offerings("[{instance_type: s, zone: z, count: 1, startup_taints: x}]", DIALECT)


async def test_the_record_has_the_taints_that_stay_and_the_hook_gets_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offerings = tmp_path / "offerings.yaml"
    offerings.write_text(ENTRY.format(f"'{GPU}'", "'cni:NoExecute'"))
    async with world(SPEC, offerings=str(offerings)) as w:
        (machine,) = await w.shard.machines()
        assert machine.taints == [
            pb.Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule")
        ]
        assert LABEL_TAINTS not in machine.labels
        commands, run = [], w.substrate.run_on_host

        async def note(host: Host, command: HostCommand) -> HostResult:
            commands.append(command)
            return await run(host, command)

        monkeypatch.setattr(w.substrate, "run_on_host", note)
        await w.configured()
        assert commands[0].taints == (GPU, "cni:NoExecute")


async def test_a_machine_with_a_host_keeps_the_taints_it_was_made_with(tmp_path: Path) -> None:
    offerings = tmp_path / "offerings.yaml"
    offerings.write_text(ENTRY.format("'a=b:NoSchedule'", ""))
    async with world(SPEC, offerings=str(offerings)) as w:
        machine = await w.idle()
        offerings.write_text(ENTRY.format("'c=d:NoSchedule'", ""))
        await w.running.reload_offerings()
        await w.advance(3600.0)
        record = await w.shard.get(machine)
        assert [taint.key for taint in record.taints] == ["a"]


def test_a_shape_that_an_earlier_release_stored_is_read_with_its_taints() -> None:
    stored = pb.Machine(
        instance_type="t-4",
        capacity_type=pb.CAPACITY_TYPE_SPOT,
        labels={LABEL_TAINTS: f"{GPU},a:NoExecute", "b": "c"},
    )
    shape = shape_of(stored.SerializeToString())
    assert shape.taints == (GPU, "a:NoExecute")
    assert dict(shape.labels) == {"b": "c"}
    sent = pb.Machine.FromString(shape.encoded)
    assert LABEL_TAINTS not in sent.labels
    assert [taint.effect for taint in sent.taints] == ["NoSchedule", "NoExecute"]
