"""InspectNeeds over gRPC: one need is selected, and explained when a person asks."""

from dataclasses import replace

from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from readable_shard import Shard, all_of, called
from worlds import A, B, label, machine, need


async def test_one_need_is_selected_and_explained_with_remedies_that_were_tried() -> None:
    arch = label("kubernetes.io/arch", "In", "amd64")
    asked = need(A, cpu=4, where=[arch])
    gpu = replace(asked, aggregate={**asked.aggregate, "nvidia.com/gpu": 1000})
    machines = [machine("m-1", labels={"kubernetes.io/arch": "amd64"}), machine("m-2", cpu=8)]
    shard = Shard(machines=machines, needs=[gpu, need(A, cpu=2, priority=7), need(B, cpu=99)])
    shard.cycle()
    fingerprint = gpu.profile.fingerprint

    async with called(shard) as to:

        async def views(**selected: object) -> list[pb.NeedView]:
            request = pb.InspectNeedsRequest(**selected)  # type: ignore[arg-type]
            header, *found = await all_of(to.read.InspectNeeds(request))
            assert header.header.total_needs == len(found)
            return [frame.need for frame in found]

        assert not await views(profile_fingerprint=fingerprint, group="other")
        (plain,) = await views(profile_fingerprint=fingerprint)
        assert not plain.HasField("explanation")
        (view,) = await views(profile_fingerprint=fingerprint, with_remedies=True)
        met = [v for v in await views(with_remedies=True) if v.satisfied]
    (blocker,) = view.explanation.blockers
    assert (blocker.kind, blocker.detail) == (pb.BLOCKER_KIND_DIMENSION, "nvidia.com/gpu")
    assert [r.change for r in view.explanation.remedies if r.met] == ["ask for no nvidia.com/gpu"]
    assert not any("arch" in remedy.change for remedy in view.explanation.remedies)
    assert met
    assert not any(v.HasField("explanation") for v in met)
