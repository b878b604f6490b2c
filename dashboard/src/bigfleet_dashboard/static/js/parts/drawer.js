// The drawer at the side: one at a time, closed with Esc, and the focus goes back where it came from.
import { fill, h } from "./dom.js";

const el = document.getElementById("drawer");
let cameFrom = null;

export function openDrawer(title, ...content) {
  if (el.hidden) cameFrom = document.activeElement;
  fill(el,
    h("div.drawer-head", {}, h("h2", { id: "drawer-title", text: title, tabindex: "-1" }),
      h("button.ghost", { type: "button", text: "Close", onclick: closeDrawer })),
    ...content);
  el.hidden = false;
  el.scrollTop = 0;
  el.querySelector("button").focus();
}

export function closeDrawer() {
  if (el.hidden) return;
  el.hidden = true;
  cameFrom?.isConnected && cameFrom.focus();
}

document.addEventListener("keydown", (e) => { if (e.key === "Escape") closeDrawer(); });

export function section(title, items) {
  if (!items || !items.length) return null;
  return h("section", {}, h("h3", { text: title }), h("ul", {}, items.map((text) => h("li", {}, text))));
}

export function facts(pairs) {
  return h("dl.facts", {}, pairs.filter(([, v]) => v !== null && v !== undefined && v !== "").map(([k, v]) => [h("dt", { text: k }), h("dd", {}, v)]));
}
