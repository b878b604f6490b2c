// The page: which screen is shown, news from the server, theme and keys. Screens are modules that are
// loaded when first shown; each is given an element and says how to end.
import { begin, on } from "./parts/live.js";
import { fill, h } from "./parts/dom.js";
import { forgetColours } from "./parts/colours.js";
import { closeDrawer, openDrawer } from "./parts/drawer.js";
import { demoBar } from "./parts/demo.js";

const ROUTES = [
  [/^\/$/, "Overview", "overview"],
  [/^\/shards$/, "Shards", "shards"],
  [/^\/shards\/(.+)$/, "Shard", "shard"],
  [/^\/clusters$/, "Clusters", "clusters"],
  [/^\/clusters\/(.+)$/, "Cluster", "cluster"],
  [/^\/machines$/, "Machines", "machines"],
  [/^\/needs$/, "Needs", "needs"],
  [/^\/decisions$/, "Decisions", "decisions"],
  [/^\/topology$/, "Topology", "topology"],
  [/^\/providers$/, "Providers", "providers"],
  [/^\/cost$/, "Cost", "cost"],
  [/^\/whatif$/, "What-if", "whatif"],
];
const screen = document.getElementById("screen");
const title = document.getElementById("title");
const told = JSON.parse(document.getElementById("begin").textContent);
let end = null, turn = 0;

export function go(path, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"]({}, "", path);
  show(true);
}

async function show(moved = false) {
  const mine = ++turn;
  closeDrawer();
  end?.();
  end = null;
  const path = location.pathname.length > 1 ? location.pathname.replace(/\/$/, "") : "/";
  const found = ROUTES.map(([pattern, name, module]) => [path.match(pattern), name, module]).find(([m]) => m);
  mark(path);
  if (!found) {
    title.textContent = "Not found";
    fill(screen, h("p.empty", { text: `There is no screen at ${path}.` }));
    return;
  }
  const [match, name, module] = found;
  const part = match[1] ? decoded(match[1]) : null;
  title.textContent = part ? `${name} ${part}` : name;
  document.title = `${title.textContent} · BigFleet`;
  try {
    const loaded = await import(`./screens/${module}.js`);
    if (mine !== turn) return;
    fill(screen);
    end = loaded.show(screen, { part, query: new URLSearchParams(location.search), go, told }) || null;
    screen.dataset.shown = module;
    if (moved) { title.focus({ preventScroll: true }); scrollTo(0, 0); }
  } catch (error) {
    if (mine === turn) fill(screen, h("p.error", { role: "alert", text: `This screen failed: ${error.message}` }));
    console.error(error);
  }
}

/** A name in an address; unchanged where it is not a valid encoding. */
function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function mark(path) {
  for (const link of document.querySelectorAll("#nav a")) {
    const href = link.getAttribute("href");
    const here = href === "/" ? path === "/" : path === href || path.startsWith(`${href}/`);
    if (here) { link.setAttribute("aria-current", "page"); link.scrollIntoView({ block: "nearest", inline: "center" }); }
    else link.removeAttribute("aria-current");
  }
}

document.addEventListener("click", (e) => {
  const link = e.target.closest("a[data-link]");
  if (!link || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey) return;
  e.preventDefault();
  go(link.getAttribute("href"));
});
addEventListener("popstate", () => show(true));

// -- numbers that are always in view ----------------------------------------------------------------

function always(overview) {
  const unmet = document.getElementById("nav-unmet");
  unmet.hidden = !overview.needs.unmet;
  fill(unmet, overview.needs.unmet, h("span.sr", { text: " unmet" }));
}
on("overview", always);
on("state", (up) => {
  const live = document.getElementById("live");
  live.dataset.on = up ? "yes" : "no";
  live.textContent = up ? "Live" : "Reconnecting";
});
if (told.user) document.getElementById("user").textContent = told.user;

// -- theme ------------------------------------------------------------------------------------------

const THEMES = ["auto", "light", "dark"];
const themeButton = document.getElementById("theme");

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  try { localStorage.setItem("bigfleet-theme", name); } catch { /* storage may be forbidden */ }
  themeButton.textContent = `Theme: ${name}`;
  themeButton.setAttribute("aria-label", `Theme: ${name}; change it`);
  forgetColours();
  document.dispatchEvent(new Event("themechange"));
}
themeButton.addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % 3]));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(document.documentElement.dataset.theme));
setTheme(document.documentElement.dataset.theme);

// -- keys -------------------------------------------------------------------------------------------

function help() {
  const links = [...document.querySelectorAll("#nav a")];
  const rows = [["?", "this list"], ["/", "search on this screen"], ["Esc", "close what is open"], ["↑ ↓ Enter", "move in a table or the map, open"],
    ...links.map((a) => [`g ${a.dataset.key}`, a.firstChild.textContent])];
  openDrawer("Keys", h("dl.facts", {}, rows.map(([key, what]) => [h("dt", {}, h("kbd", { text: key })), h("dd", { text: what })])));
}
document.getElementById("help").addEventListener("click", help);

let chord = 0;
addEventListener("keydown", (e) => {
  if (e.target.closest("input,select,textarea") || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "?") help();
  else if (e.key === "/") { const search = screen.querySelector("input[type=search]"); if (search) { e.preventDefault(); search.focus(); } }
  else if (e.key === "g") chord = performance.now();
  else if (chord && performance.now() - chord < 1200) {
    const link = document.querySelector(`#nav a[data-key="${CSS.escape(e.key)}"]`);
    chord = 0;
    if (link) { e.preventDefault(); go(link.getAttribute("href")); }
  }
});

begin(told.overview);
always(told.overview);
if (told.demo) demoBar(document.getElementById("demo"));
show();
