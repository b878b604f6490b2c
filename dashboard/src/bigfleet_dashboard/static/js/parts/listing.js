// A screen that is one long list: filters above, rows loaded as they come into view.
import { fill, h, panel, select } from "./dom.js";
import { follow } from "./live.js";
import { get } from "./api.js";
import { vtable } from "./vtable.js";
import { count } from "./format.js";

/** filters: [{name, label, options() -> [[value, text]]}]; path answers {total, [rows]}. */
export function listing(root, { title, path, rows, columns, filters, open, query, none, empty }) {
  const chosen = Object.fromEntries([...filters.map((f) => [f.name, query.get(f.name) || ""]), ["q", query.get("q") || ""]]);
  const note = h("span.muted", { role: "status" });
  const load = async (offset, limit) => {
    const params = new URLSearchParams(Object.entries(chosen).filter(([, v]) => v));
    params.set("offset", offset);
    params.set("limit", limit);
    const answer = await get(`${path}?${params}`);
    fill(note, count(answer.total));
    view.empty(Object.entries(chosen).some(([name, v]) => v && name !== "sort") ? empty : none);
    return { total: answer.total, rows: answer[rows] };
  };
  const view = vtable({ label: title, columns, load, open, empty });
  const changed = () => {
    const params = new URLSearchParams(Object.entries(chosen).filter(([, v]) => v));
    history.replaceState({}, "", `${location.pathname}${params.size ? `?${params}` : ""}`);
    view.refresh(true).catch((error) => console.warn(error.message));
  };
  let typing = null;
  const search = h("input", { type: "search", placeholder: "Search", "aria-label": `Search ${title.toLowerCase()}`, value: chosen.q, oninput: () => {
    clearTimeout(typing);
    typing = setTimeout(() => { chosen.q = search.value.trim(); changed(); }, 200);
  } });
  const picks = filters.map((f) => select(f.label, [["", f.label], ...f.options()], chosen[f.name], (v) => { chosen[f.name] = v; changed(); }));
  root.append(panel(title, h("div.tools", {}, picks, search, note), view.root));
  const going = follow(() => view.refresh(), 1500);
  return () => { going.end(); view.end(); clearTimeout(typing); };
}
