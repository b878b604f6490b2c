"""What is strung together of kept parts is the message one would build from the tables."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bigfleet.coordinator.reports.assignments import AssignmentTable, ReportReply
from bigfleet.coordinator.state import (
    AddShard,
    AssignDomain,
    Command,
    ContactClusters,
    FleetState,
    RefusalError,
    RemoveShard,
    UnassignDomain,
    apply,
    rows_of,
    state_of,
)
from bigfleet.coordinator.store.interface import StoredRow as Stored
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

SHARDS = ("s-1", "s-2", "s-3")
VALUES = st.sampled_from([f"rack-{number}" for number in range(12)])
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(AddShard, st.sampled_from(SHARDS), st.just("h:1")),
    st.builds(RemoveShard, st.sampled_from(SHARDS)),
    st.builds(AssignDomain, st.sampled_from(["zone", "rack"]), VALUES, st.sampled_from(SHARDS)),
    st.builds(UnassignDomain, st.sampled_from(["zone", "rack"]), VALUES),
    st.builds(ContactClusters, st.sampled_from(SHARDS), VALUES.map(lambda name: (name,))),
)
Row = tuple[str, str, str]


def rows(domains: list[pb.DomainAssignment]) -> list[Row]:
    return sorted((one.shard_id, one.topology_key, one.topology_value) for one in domains)


def plain(state: FleetState, shard: str) -> tuple[object, ...]:
    """Straight from the tables."""
    everyone = sorted((owner, key, value) for (key, value), owner in state.domains.items())
    return (
        [row for row in everyone if row[0] == shard],
        [row for row in everyone if row[0] != shard],
        sorted(name for name, binding in state.clusters.items() if binding.shard == shard),
        state.revision,
        state.default_shard == shard,
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(COMMANDS, st.booleans()), max_size=30))
def test_an_answer_says_what_the_tables_say(story: list[tuple[Command, bool]]) -> None:
    state = FleetState()
    assignments = AssignmentTable(state)
    kept: dict[tuple[str, str], bytes] = {}
    for now, (command, reloaded) in enumerate(story, 1):
        try:
            changes = apply(state, command, now)
        except RefusalError:
            continue
        state.take(changes)
        puts, deletes = rows_of(changes)
        kept.update({(row.table, row.key): row.value for row in puts})
        for gone in deletes:
            kept.pop((gone.table, gone.key), None)
        if reloaded:
            state.become(state_of(Stored(t, k, v) for (t, k), v in kept.items()))
        for shard in SHARDS:
            head = pb.ReportAck(coordinator_term=3, acknowledged=True)
            sent = ReportReply(head, assignments.of(shard)).to_proto()
            got = sent.assignments
            assert sent.coordinator_term == 3
            assert (
                rows(list(got.domains)),
                rows(list(got.foreign_domains)),
                list(got.clusters),
                got.revision,
                got.is_default,
            ) == plain(state, shard)
