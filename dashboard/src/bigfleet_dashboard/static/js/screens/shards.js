// Shards: one line each.
import { chip, fill, h, link, panel } from "../parts/dom.js";
import { follow } from "../parts/live.js";
import { get } from "../parts/api.js";
import { vtable } from "../parts/vtable.js";
import { ago, count, ms } from "../parts/format.js";
import { stateBar } from "../parts/rows.js";

export function health(s) {
  if (!s.answering) return chip("silent", "bad");
  if (s.paused) return chip("paused", "warn");
  if (s.dry_run) return chip("dry run", "warn");
  return s.rails.length ? chip("held back", "warn") : chip("deciding", "good");
}

export function show(root, { go }) {
  const note = h("span.muted");
  const view = vtable({
    label: "Shards", empty: "No shard has registered yet.",
    open: (s) => go(`/shards/${encodeURIComponent(s.id)}`),
    columns: [
      { name: "Shard", width: "minmax(90px, 1fr)", phone: "minmax(70px, 1fr)", cell: (s) => link(`/shards/${encodeURIComponent(s.id)}`, s.id) },
      { name: "State", width: "110px", phone: "96px", cell: health },
      { name: "Machines", width: "96px", phone: "86px", num: true, cell: (s) => count(s.machines) },
      { name: "By state", width: "minmax(120px, 1fr)", wide: true, cell: (s) => stateBar(s.by_state) },
      { name: "Needs", width: "80px", wide: true, num: true, cell: (s) => count(s.needs) },
      { name: "Unmet", width: "80px", phone: "66px", num: true, cell: (s) => (s.unmet ? chip(count(s.unmet), "bad") : "0") },
      { name: "Sessions", width: "88px", wide: true, num: true, cell: (s) => count(s.sessions) },
      { name: "Cycle", width: "84px", wide: true, num: true, cell: (s) => count(s.cycle) },
      { name: "p50", width: "84px", wide: true, num: true, cell: (s) => ms(s.cycle_ms.p50) },
      { name: "p99", width: "84px", wide: true, num: true, cell: (s) => ms(s.cycle_ms.p99) },
      { name: "Reported", width: "104px", wide: true, num: true, cell: (s) => (s.late ? chip(ago(s.reported_at_unix_seconds), "warn") : ago(s.reported_at_unix_seconds)) },
      { name: "Address", width: "150px", wide: true, mono: true, cell: (s) => s.address },
    ],
  });
  root.append(panel("All shards", note, view.root));
  const going = follow(async (signal) => {
    const answer = await get("/shards", signal);
    view.setRows(answer.shards);
    fill(note, `${answer.total} registered`);
  });
  return () => { going.end(); view.end(); };
}
