// Machines: every machine, filtered; a row opens what is known of it.
import { get } from "../parts/api.js";
import { link } from "../parts/dom.js";
import { listing } from "../parts/listing.js";
import { openMachine, stateChip, whole } from "../parts/rows.js";
import { STATES } from "../parts/colours.js";
import { money, percent, shortId, way } from "../parts/format.js";

const columns = [
  { name: "State", width: "132px", cell: (m) => stateChip(m.state) },
  { name: "Machine", width: "minmax(130px, 1fr)", phone: "minmax(100px, 1fr)", mono: true, cell: (m) => shortId(m.id) },
  { name: "Cluster", width: "104px", phone: "90px", cell: (m) => (m.cluster ? link(`/clusters/${encodeURIComponent(m.cluster)}`, m.cluster) : "–") },
  { name: "Type", width: "126px", wide: true, cell: (m) => m.instance_type },
  { name: "Zone", width: "100px", wide: true, cell: (m) => m.zone },
  { name: "Capacity type", width: "104px", wide: true, cell: (m) => way(m.capacity_type) },
  { name: "Price", width: "84px", num: true, wide: true, cell: (m) => `${money(m.price_per_hour)}/h` },
  { name: "Interruption", width: "108px", num: true, wide: true, cell: (m) => percent(m.interruption_probability) },
  { name: "Shard", width: "90px", wide: true, cell: (m) => link(`/shards/${encodeURIComponent(m.shard)}`, m.shard) },
  { name: "Last error", width: "minmax(110px, 1fr)", wide: true, cell: (m) => whole(m.last_error || "") },
];

export function show(root, { query }) {
  let end = null, ended = false;
  get("/whatif").catch(() => ({ clusters: [], zones: [], instance_types: [], capacity_types: [] })).then((known) => {
    if (ended) return;
    const same = (list, name = (v) => v) => () => list.map((v) => [v, name(v)]);
    end = listing(root, {
      title: "All machines", path: "/machines", rows: "machines", columns, query, open: (m) => openMachine(m.index), none: "No machine is known yet: a shard lists what its providers offer.", empty: "No machine passes this filter.",
      filters: [
        { name: "state", label: "Any state", options: same(STATES) },
        { name: "cluster", label: "Any cluster", options: same(known.clusters) },
        { name: "capacity_type", label: "Any capacity type", options: same(known.capacity_types, way) },
        { name: "zone", label: "Any zone", options: same(known.zones) },
        { name: "instance_type", label: "Any type", options: same(known.instance_types) },
      ],
    });
  });
  return () => { ended = true; end?.(); };
}
