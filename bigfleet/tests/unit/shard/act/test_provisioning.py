"""Provision and Delete: what is written before a Create, what its failures mean, giving back."""

import grpc
import pytest

from bigfleet.decision import ActionKind, Carry
from bigfleet.model import MachineState
from bigfleet.provider import CallError
from bigfleet.shard.act.backoff import remembered
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from executing import World, passes, run, until
from executing_values import machine, order, record_of, stamp

K = ActionKind
S = MachineState


def test_the_stamp_is_on_disk_before_create_is_called() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.SPECULATIVE))
            world.cloud.latency = 5.0
            world.hand_over(order(K.PROVISION, "m"))
            await until(lambda: bool(world.cloud.under_way["m"]))
            assert world.memory.entries["m"].stamp == stamp()
            await world.settled()
            assert world.known("m").state is S.IDLE
            assert world.known("m").stamp == stamp()
            assert world.outcomes() == {("Provision", "success"): 1}
            assert world.woken

    run(main)


def test_without_a_line_on_disk_nothing_is_created() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.SPECULATIVE))
            world.memory.full = True
            world.hand_over(order(K.PROVISION, "m"))
            await world.settled()
            assert not world.cloud.calls
            assert world.outcomes() == {("Provision", "other"): 1}
            assert world.state("m") is S.SPECULATIVE
            assert world.executor.failures.waiting() == {"m"}

    run(main)


def test_the_line_goes_when_the_machine_is_bound() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.SPECULATIVE))
            world.hand_over(order(K.PROVISION, "m"))
            await world.settled()
            assert "m" in world.memory.entries
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            await until(lambda: "m" not in world.memory.entries)

    run(main)


def test_a_line_that_cannot_be_taken_back_now_is_taken_back_later() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.SPECULATIVE))
            world.hand_over(order(K.PROVISION, "m"))
            await world.settled()
            world.memory.full = True
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            await passes(5)
            assert "m" in world.memory.entries
            world.memory.full = False
            await until(lambda: "m" not in world.memory.entries, 5)

    run(main)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "throttled"),
        (grpc.StatusCode.INVALID_ARGUMENT, "bad_request"),
        (grpc.StatusCode.INTERNAL, "unavailable"),
        (grpc.StatusCode.UNAVAILABLE, "unavailable"),
    ],
)
def test_a_refused_create_is_classified_by_its_code(code: grpc.StatusCode, reason: str) -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.SPECULATIVE))
            world.cloud.refuse["Create"] = CallError(code, "no")
            world.hand_over(order(K.PROVISION, "m"))
            await world.settled()
            assert world.state("m") is S.SPECULATIVE
            assert world.metrics.counts[f"create {reason}"] == 1
            assert world.executor.failures.waiting() == {"m"}
            await until(lambda: "m" not in world.memory.entries)

    run(main)


def test_a_create_that_fails_later_cools_its_offering_and_wakes_the_cycle() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.SPECULATIVE))
            world.cloud.finishes = False
            world.hand_over(order(K.PROVISION, "m"))
            await world.settled()
            assert world.state("m") is S.CREATING
            before = world.woken
            world.cloud.finish("m", failed="OutOfCapacity: none left")
            world.observe("m")
            assert world.metrics.counts["create out_of_capacity"] == 1
            assert (before, world.woken) == (0, 1)
            carry = remembered(Carry(), world.executor.failures.take_events())
            (offering,) = carry.cooling(world.clock.now())
            assert offering[:3] == ("p", "t", "z")
            run = world.executor.failures.trouble().of(offering)
            assert run is not None
            assert run.text == "OutOfCapacity: none left"

    run(main)


def test_a_create_whose_ack_shows_a_failed_machine_is_counted_once() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.SPECULATIVE))

            def broken(method: str, shown: pb.Machine) -> None:
                shown.state, shown.last_error = pb.MACHINE_STATE_FAILED, "QuotaExceeded: 10 of 10"

            world.cloud.change = broken
            world.hand_over(order(K.PROVISION, "m"))
            await world.settled()
            assert world.state("m") is S.FAILED
            assert world.outcomes() == {("Provision", "provider_error"): 1}
            assert world.metrics.counts["create quota"] == 1

    run(main)


def test_a_refused_create_ack_makes_the_machine_failed() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.SPECULATIVE))

            def nonsense(method: str, shown: pb.Machine) -> None:
                shown.interruption_probability = 2.0

            world.cloud.change = nonsense
            world.hand_over(order(K.PROVISION, "m"))
            await world.settled()
            assert world.state("m") is S.FAILED
            assert world.outcomes() == {("Provision", "transition_error"): 1}
            assert world.metrics.counts["rejected interruption_probability"] == 1
            assert world.refreshed == ["m"]

    run(main)


def test_an_unanswered_create_that_was_done_keeps_its_stamp() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.SPECULATIVE))
            world.cloud.finishes = False
            world.cloud.swallow["Create"] = CallError(grpc.StatusCode.DEADLINE_EXCEEDED, "late")
            world.hand_over(order(K.PROVISION, "m"))
            await world.settled()
            assert world.outcomes() == {("Provision", "ctx_canceled"): 1}
            assert (world.state("m"), world.known("m").stamp) == (S.CREATING, stamp())
            assert "m" in world.memory.entries
            assert not world.metrics.counts["create unavailable"]

    run(main)


def test_a_record_that_fits_no_column_is_refused_like_any_other_and_ends_no_worker() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.SPECULATIVE), machine("n", S.SPECULATIVE))

            def endless(method: str, shown: pb.Machine) -> None:
                shown.host.ref = "h" * 70_000

            world.cloud.change = endless
            world.hand_over(order(K.PROVISION, "m"))
            await world.settled()
            assert world.outcomes() == {("Provision", "transition_error"): 1}
            assert world.metrics.counts["rejected structural"] == 1
            # The same where the answer is lost and the machine is asked for by itself.
            world.cloud.machines["n"].host.ref = "h" * 70_000
            world.cloud.swallow["Create"] = CallError(grpc.StatusCode.UNAVAILABLE, "reset")
            world.hand_over(order(K.PROVISION, "n"))
            await world.settled()
            assert world.outcomes()["Provision", "provider_error"] == 1
            assert world.refreshed == ["m", "n"]

    run(main)


def test_an_answer_about_another_machine_tells_nothing_of_this_one() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.SPECULATIVE))
            world.cloud.swallow["Create"] = CallError(grpc.StatusCode.UNAVAILABLE, "reset")
            world.cloud.shown_by_get = lambda machine_id: record_of(machine("stranger"))
            world.hand_over(order(K.PROVISION, "m"))
            await world.settled()
            assert world.state("m") is S.SPECULATIVE
            assert world.book.get("stranger") is None
            assert world.metrics.counts["rejected structural"] == 1
            assert world.refreshed == ["m"], "it is looked at again"

    run(main)


def test_how_long_a_create_took_is_seen_when_it_ends() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.SPECULATIVE))
            world.cloud.finishes = False
            world.hand_over(order(K.PROVISION, "m"))
            await world.settled()
            await passes(60)
            world.cloud.finish("m")
            world.observe("m")
            assert world.metrics.seconds["create"] == [pytest.approx(60, abs=0.1)]

    run(main)


def test_an_idle_machine_is_given_back() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            world.hand_over(order(K.DELETE, "m", cluster=""))
            assert world.state("m") is S.DELETING
            await world.settled()
            assert world.state("m") is S.SPECULATIVE
            assert world.outcomes() == {("Delete", "success"): 1}
            assert world.metrics.counts["released"] == 1

    run(main)


def test_a_provider_that_does_not_offer_delete_is_not_asked_again_soon() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"), machine("n"))
            world.cloud.refuse["Delete"] = CallError(grpc.StatusCode.UNIMPLEMENTED, "bare metal")
            world.hand_over(order(K.DELETE, "m", cluster=""))
            await world.settled()
            assert world.state("m") is S.IDLE
            assert world.outcomes() == {("Delete", "provider_error"): 1}
            assert world.hand_over(order(K.DELETE, "n", cluster="")).deduped == 1
            assert world.hand_over(order(K.BOOTSTRAP, "n")).accepted
            await passes(3601)
            assert world.hand_over(order(K.DELETE, "m", cluster="")).accepted

    run(main)
