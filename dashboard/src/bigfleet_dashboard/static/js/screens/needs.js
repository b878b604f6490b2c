// Needs: every need with its verdict; a row opens the drawer that says why in words.
import { get } from "../parts/api.js";
import { listing } from "../parts/listing.js";
import { needColumns, openNeed } from "../parts/rows.js";
import { reasonWords } from "../parts/format.js";

const REASONS = ["PRIORITY_STARVED", "NO_MATCHING_SUPPLY", "TOPOLOGY_UNSATISFIABLE", "PREEMPTION_EXHAUSTED", "QUOTA", "SPEND_LIMIT", "STOCK_OUT", "BOOTSTRAP_ERROR", "PAUSED"];

export function show(root, { query }) {
  let end = null, ended = false;
  get("/whatif").catch(() => ({ clusters: [] })).then((known) => {
    if (ended) return;
    end = listing(root, {
      title: "All needs", path: "/needs", rows: "needs", columns: needColumns, open: openNeed, query, none: "No cluster has sent demand yet.", empty: "No need passes this filter.",
      filters: [
        { name: "verdict", label: "Any verdict", options: () => [["unmet", "Unmet"], ["met", "Met"]] },
        { name: "class", label: "Any class", options: () => ["critical", "service", "batch", "other"].map((c) => [c, c]) },
        { name: "reason", label: "Any reason", options: () => REASONS.map((r) => [r, reasonWords(r)]) },
        { name: "cluster", label: "Any cluster", options: () => known.clusters.map((c) => [c, c]) },
        { name: "sort", label: "Unmet first", options: () => [["priority", "By priority"], ["age", "By age"], ["machines", "By machines"], ["cluster", "By cluster"]] },
      ],
    });
  });
  return () => { ended = true; end?.(); };
}
