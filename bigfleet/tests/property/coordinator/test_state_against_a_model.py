"""Any commands in any order: the tables hold what an obvious model holds, and refuse as it does."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from bigfleet.coordinator.state import (
    AddShard,
    AssignDomain,
    BindCluster,
    Command,
    ContactClusters,
    FleetState,
    ForgetAddress,
    ProviderEntry,
    RefusalError,
    RegisterProvider,
    RemoveProvider,
    RemoveShard,
    SetQuota,
    UnassignDomain,
    apply,
    rows_of,
    state_of,
)
from bigfleet.coordinator.state.rows import all_rows
from bigfleet.coordinator.store.interface import StoredRow

SHARDS = st.sampled_from(["s-1", "s-2", "s/3", ""])
NAMES = st.sampled_from(["a", "b/c", "ü %2F", ""])
IDS = KEYS = frozenset({"a", "b/c"})
VALUES = frozenset({"a"})
"""Which of the names may be an id, a label's key, a label's value."""
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(AddShard, SHARDS, st.sampled_from(["h:1", "h:2", ""])),
    st.builds(ForgetAddress, SHARDS),
    st.builds(RemoveShard, SHARDS),
    st.builds(ContactClusters, SHARDS, st.lists(NAMES, max_size=3).map(tuple)),
    st.builds(BindCluster, NAMES, SHARDS),
    st.builds(AssignDomain, NAMES, NAMES, SHARDS),
    st.builds(UnassignDomain, NAMES, NAMES),
    st.builds(
        SetQuota,
        NAMES,
        NAMES,
        st.dictionaries(SHARDS, st.integers(-1, 9), max_size=3),
        st.none() | st.integers(0, 12),
    ),
    st.builds(
        RegisterProvider,
        st.builds(ProviderEntry, NAMES, NAMES, NAMES, st.lists(SHARDS, max_size=2).map(tuple)),
    ),
    st.builds(RemoveProvider, NAMES),
)


class No(Exception):  # noqa: N818 - it is an answer
    """The model says no."""


@dataclass
class Model:
    """The same facts, the slow and obvious way."""

    shards: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    clusters: dict[str, tuple[str, int]] = field(default_factory=dict)
    domains: dict[tuple[str, str], str] = field(default_factory=dict)
    quotas: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    providers: dict[str, ProviderEntry] = field(default_factory=dict)

    def _need(self, code: str, *holds: bool) -> None:
        if not all(holds):
            raise No(code)

    def _shard(self, shard: str) -> None:
        self._need("INVALID_ARGUMENT", shard != "")
        self._need("NOT_FOUND", shard in self.shards)

    def do(self, command: Command, now: int) -> None:  # noqa: C901 - one case per command
        match command:
            case AddShard(shard, address):
                self._need("INVALID_ARGUMENT", shard != "")
                old = self.shards.get(shard)
                if old is None:
                    self.shards[shard] = (address, now, now)
                elif address not in ("", old[0]):
                    self.shards[shard] = (address, now, old[2])
            case ForgetAddress(shard):
                self._shard(shard)
                if self.shards[shard][0]:
                    self.shards[shard] = ("", now, self.shards[shard][2])
            case RemoveShard(shard):
                self._shard(shard)
                del self.shards[shard]
                self.clusters = {k: v for k, v in self.clusters.items() if v[0] != shard}
                self.domains = {k: v for k, v in self.domains.items() if v != shard}
                for slices in self.quotas.values():
                    slices.pop(shard, None)
            case ContactClusters(shard, clusters):
                self._shard(shard)
                for cluster in clusters:
                    if cluster in IDS:
                        self.clusters.setdefault(cluster, (shard, now))
            case BindCluster(cluster, shard):
                self._need("INVALID_ARGUMENT", cluster in IDS)
                self._shard(shard)
                if self.clusters.get(cluster, ("", 0))[0] != shard:
                    self.clusters[cluster] = (shard, now)
            case AssignDomain(key, value, shard):
                self._need("INVALID_ARGUMENT", key in KEYS, value in VALUES)
                self._shard(shard)
                self._need("ALREADY_EXISTS", self.domains.get((key, value), shard) == shard)
                self.domains[key, value] = shard
            case UnassignDomain(key, value):
                self._need("INVALID_ARGUMENT", key != "", value != "")
                self.domains.pop((key, value), None)
            case SetQuota(provider, region, per_shard, announced):
                self._need("INVALID_ARGUMENT", provider in IDS, min([0, *per_shard.values()]) == 0)
                if per_shard and announced is not None:
                    self._need("INVALID_ARGUMENT", sum(per_shard.values()) <= announced)
                for shard in sorted(per_shard):
                    self._shard(shard)
                if per_shard:
                    self.quotas[provider, region] = dict(per_shard)
                else:
                    self.quotas.pop((provider, region), None)
            case RegisterProvider(provider):
                self._need("INVALID_ARGUMENT", provider.name in IDS, provider.address != "")
                self.providers[provider.name] = provider
            case RemoveProvider(name):
                self._need("INVALID_ARGUMENT", name != "")
                self._need("NOT_FOUND", name in self.providers)
                del self.providers[name]
            case _:
                raise AssertionError(command)

    def assigned(self) -> object:
        """Everything that any shard is told of."""
        oldest = min(self.shards, key=lambda one: (self.shards[one][2], one), default=None)
        return (
            dict(self.domains),
            {cluster: shard for cluster, (shard, _) in self.clusters.items()},
            {pool: dict(slices) for pool, slices in self.quotas.items()},
            dict(self.providers),
            oldest,
        )


class Kept:
    """Rows as a store keeps them."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], bytes] = {}

    def loaded(self) -> FleetState:
        return state_of(StoredRow(table, key, value) for (table, key), value in self.rows.items())


def seen(state: FleetState) -> object:
    """The tables as the model writes them."""
    return (
        {k: (v.address, v.registered_at, v.since) for k, v in state.shards.items()},
        {k: (v.shard, v.bound_at) for k, v in state.clusters.items()},
        state.domains,
        state.quotas,
        state.providers,
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(COMMANDS, max_size=40))
def test_the_tables_hold_and_refuse_what_the_model_does(commands: list[Command]) -> None:
    state, model, kept = FleetState(), Model(), Kept()
    for now, command in enumerate(commands, 1):
        before, revision = model.assigned(), state.revision
        refused = expected = ""
        try:
            changes = apply(state, command, now)
        except RefusalError as refusal:
            refused = refusal.code
        else:
            puts, deletes = rows_of(changes)
            kept.rows.update({(row.table, row.key): row.value for row in puts})
            for gone in deletes:
                del kept.rows[gone.table, gone.key]
            state.take(changes)
        try:
            model.do(command, now)
        except No as no:
            expected = str(no)
        assert refused == expected
        assert seen(state) == (
            model.shards, model.clusters, model.domains, model.quotas, model.providers
        )  # fmt: skip
        # What shards are told of never changes under an old revision.
        assert state.revision > revision or model.assigned() == before
        _indexes_agree(state)
    assert seen(kept.loaded()) == seen(state)
    assert kept.loaded().revision == state.revision
    assert {(row.table, row.key): row.value for row in all_rows(state)} == kept.rows


def _indexes_agree(state: FleetState) -> None:
    for shard in ("s-1", "s-2", "s/3"):
        assert set(state.domains_of(shard)) == {k for k, v in state.domains.items() if v == shard}
        assert state.clusters_of(shard) == {
            k for k, v in state.clusters.items() if v.shard == shard
        }
    assert all(state.part(part) for part in state.parts())
