// Clusters: what each asks for, has, and is getting.
import { chip, fill, h, link, panel } from "../parts/dom.js";
import { follow } from "../parts/live.js";
import { get } from "../parts/api.js";
import { vtable } from "../parts/vtable.js";
import { count, lasting, money } from "../parts/format.js";

export function show(root, { go }) {
  let all = [], words = "";
  const note = h("span.muted");
  const search = h("input", { type: "search", placeholder: "Search clusters", "aria-label": "Search clusters", oninput: () => { words = search.value.toLowerCase(); draw(); } });
  const view = vtable({
    label: "Clusters", empty: "No cluster is known.",
    open: (c) => go(`/clusters/${encodeURIComponent(c.id)}`),
    columns: [
      { name: "Cluster", width: "minmax(100px, 1fr)", phone: "minmax(70px, 1fr)", cell: (c) => link(`/clusters/${encodeURIComponent(c.id)}`, c.id) },
      { name: "Operator", width: "130px", phone: "118px", cell: (c) => (c.connected ? chip("connected", "good") : chip("not connected", "warn")) },
      { name: "Shard", width: "110px", wide: true, cell: (c) => (c.shard ? link(`/shards/${encodeURIComponent(c.shard)}`, c.shard) : "–") },
      { name: "Needs", width: "84px", wide: true, num: true, cell: (c) => count(c.needs) },
      { name: "Unmet", width: "70px", phone: "62px", num: true, cell: (c) => (c.unmet ? chip(count(c.unmet), "bad") : "0") },
      { name: "Bound", width: "80px", phone: "66px", num: true, cell: (c) => count(c.bound) },
      { name: "Upcoming", width: "98px", wide: true, num: true, cell: (c) => count(c.upcoming) },
      { name: "Draining", width: "92px", wide: true, num: true, cell: (c) => count(c.draining) },
      { name: "Spend", width: "110px", wide: true, num: true, cell: (c) => `${money(c.spend_per_hour)}/h` },
      { name: "Ack lag", width: "92px", wide: true, num: true, cell: (c) => lasting(c.acknowledgement_lag_seconds) },
    ],
  });
  const draw = () => { const rows = all.filter((c) => c.id.toLowerCase().includes(words)); view.setRows(rows); fill(note, `${rows.length} of ${all.length}`); };
  root.append(panel("All clusters", h("div.tools", {}, search, note), view.root));
  const going = follow(async (signal) => { all = (await get("/clusters", signal)).clusters; draw(); });
  return () => { going.end(); view.end(); };
}
