// Topology: who leads, who owns which domain, quotas, moves between shards, and where facts come from.
import { chip, fill, h, link, panel, table } from "../parts/dom.js";
import { follow, latest, on } from "../parts/live.js";
import { get } from "../parts/api.js";
import { ago, count, ms } from "../parts/format.js";
import { stateBar } from "../parts/rows.js";

const ROLES = { leader: "good", silent: "bad", follower: "accent" };
const STATES = { ok: "good", failing: "bad", waiting: "warn", off: "" };

export function show(root) {
  const top = h("div"), shards = h("div"), zones = h("div"), domains = h("div"), quotas = h("div"), moves = h("div"), waiting = h("div"), sources = h("div");
  root.append(h("div.stack", {}, top,
    h("div.cols", {}, panel("Shards registered", null, shards), panel("Zones", null, zones)),
    h("div.cols", {}, panel("Domains", null, domains), panel("Quotas", null, quotas)),
    h("div.cols", {}, panel("Moves between shards", null, moves), panel("Instructions waiting", null, waiting)), panel("Sources of this page", null, sources)));
  function draw(t) {
    const tile = (name, value, note, kind = "") => h(`div.tile${kind}`, {}, h("span.tile-name", { text: name }), h("span.tile-value", {}, value), h("span.tile-note", {}, note));
    const up = t.store.state === "ok";
    fill(top, h("div.tiles", {},
      tile("Leader", up && t.leader ? h("span.address", { text: t.leader }) : "none", up ? t.term ? `term ${count(t.term)}` : "leads" : "shards keep deciding without it", up ? "" : ".bad"),
      ...t.replicas.map((r) => tile("Replica", chip(up ? r.role : "silent", up ? ROLES[r.role] || "" : "bad"), r.address)),
      tile("Store", up ? chip("answers", "good") : chip("does not answer", "bad"), `a round of reads ${ms(t.store.read_ms)}, ${ago(t.store.answered_at_unix_seconds)}`),
      tile("Clusters bound", count(t.clusters.length), "to a shard"),
      tile("Moves", count(t.moves.filter((m) => m.phase !== "done" && m.phase !== "abandoned").length), "under way")));
    fill(shards, table([
      { name: "Shard", cell: (s) => link(`/shards/${encodeURIComponent(s.id)}`, s.id) }, { name: "Heartbeat", num: true, cell: (s) => ago(s.heartbeat_unix_seconds) },
      { name: "Clusters", num: true, cell: (s) => count(s.clusters) }, { name: "Domains", num: true, cell: (s) => (s.domains ? count(s.domains) : "all others") }, { name: "Address", cell: (s) => h("span.mono", { text: s.address }) },
    ], t.shards, { empty: "No shard has registered.", label: "Shards registered" }));
    fill(zones, table([
      { name: "Zone", cell: (z) => link(`/machines?zone=${encodeURIComponent(z.zone)}`, z.zone || "none") }, { name: "Machines", num: true, cell: (z) => count(z.machines) },
      { name: "By state", cell: (z) => stateBar(z.by_state) }, { name: "Failed", num: true, cell: (z) => (z.by_state.Failed ? chip(count(z.by_state.Failed), "bad") : "0") },
    ], t.zones, { label: "Zones" }));
    fill(domains, table([{ name: "Label", cell: (d) => h("span.mono", { text: d.key }) }, { name: "Value", cell: (d) => d.value }, { name: "Shard", cell: (d) => d.shard }], t.domains, { empty: "No domain is assigned: shards are not restricted. bigfleetctl assign-domain assigns one.", label: "Domains" }));
    fill(quotas, table([{ name: "Provider", cell: (q) => q.provider }, { name: "Region", cell: (q) => q.region || "any" }, { name: "Slices", cell: (q) => Object.entries(q.per_shard).map(([s, n]) => `${s}: ${n}`).join(", ") }], t.quotas, { empty: "No quota is set: no limit. bigfleetctl set-quota sets one.", label: "Quotas" }));
    fill(moves, table([
      { name: "Phase", cell: (m) => chip(m.phase, m.phase === "done" ? "good" : m.phase === "abandoned" ? "warn" : "accent") }, { name: "Tier", cell: (m) => m.tier.toLowerCase() },
      { name: "From", cell: (m) => m.donor }, { name: "To", cell: (m) => m.recipient }, { name: "Machines", num: true, cell: (m) => count(m.machines) }, { name: "Updated", num: true, cell: (m) => ago(m.updated_at_unix_seconds) }, { name: "Why", cell: (m) => m.reason || "–" },
    ], t.moves, { empty: "No machine has moved between shards.", label: "Moves between shards" }));
    fill(waiting, table([
      { name: "Shard", cell: (i) => i.shard }, { name: "What", cell: (i) => (i.kind || "").replaceAll("_", " ") }, { name: "Tries", num: true, cell: (i) => count(i.tries) }, { name: "Since", num: true, cell: (i) => ago(i.enqueued_at_unix_seconds) }, { name: "Last answer", cell: (i) => i.last_reason || "–" },
    ], t.instructions, { empty: "Every instruction was acknowledged.", label: "Instructions waiting" }));
  }
  const told = (o) => fill(sources, table([
    { name: "Source", cell: (s) => s.name }, { name: "State", cell: (s) => chip(s.state === "off" ? "not configured" : s.state, STATES[s.state]) }, { name: "What it gives", cell: (s) => (s.state === "off" ? s.remedy : s.text) }, { name: "Remedy", cell: (s) => (s.state === "failing" ? s.remedy || "–" : "–") },
  ], o.sources, { label: "Sources of this page" }));
  told(latest);
  const off = on("overview", told);
  const going = follow(async (signal) => draw(await get("/topology", signal)), 1500);
  return () => { off(); going.end(); };
}
