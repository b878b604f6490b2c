// A table for any number of rows: only those in view exist. Rows come from an array, or page by page
// from `load(offset, limit)`. Arrow keys move, Enter opens.
import { h } from "./dom.js";

const ROW = 32;
const PAGE = 200;

/** Columns: {name, width, num, mono, wide, phone, cell(row)}; on a phone `wide` ones are left out, and
 * `phone` is the width. */
export function vtable({ columns: given, label, load, open, empty = "Nothing here.", height }) {
  const small = matchMedia("(max-width: 560px)").matches;
  const columns = small ? given.filter((c) => !c.wide).map((c) => ({ ...c, width: c.phone || c.width })) : given;
  const template = columns.map((c) => c.width || "minmax(90px, 1fr)").join(" ");
  const least = `${columns.reduce((sum, c) => sum + parseInt((c.width || "90px").match(/\d+/)[0], 10), 0)}px`;
  const head = h("div.vt-head", { role: "row", css: { "grid-template-columns": template, "min-width": least } },
    columns.map((c) => h(`div${c.num ? ".num" : ""}`, { role: "columnheader", text: c.name })));
  const body = h("div.vt-body", { role: "rowgroup", css: { "min-width": least } });
  const scroll = h("div.vt-scroll", { tabindex: "0", role: "grid", "aria-label": label, css: height ? { "max-height": height } : {} },
    h("div", { role: "rowgroup", class: "vt-top" }, head), body);
  const note = h("p.empty", { text: empty, hidden: true });
  const root = h("div.vt", {}, scroll, note);
  const shown = new Map();
  let rows = [], total = 0, pages = new Map(), generation = 0, current = -1;

  const at = (index) => (load ? pages.get(Math.floor(index / PAGE))?.[index % PAGE] : rows[index]);

  async function fetchPage(page) {
    if (!load || pages.has(page)) return;
    const mine = generation;
    pages.set(page, []);
    try {
      const answer = await load(page * PAGE, PAGE);
      if (mine !== generation) return;
      pages.set(page, answer.rows);
      setTotal(answer.total);
    } catch (error) {
      if (mine === generation) pages.delete(page);
      if (error.name !== "AbortError") console.warn(error.message);
    }
  }

  function setTotal(n) {
    total = n;
    body.style.height = `${total * ROW}px`;
    scroll.setAttribute("aria-rowcount", String(total + 1));
    note.hidden = total > 0;
    scroll.hidden = total === 0;
    draw(true);
  }

  function draw(force = false) {
    const first = Math.max(0, Math.floor((scroll.scrollTop - 200) / ROW));
    const last = Math.min(total, Math.ceil((scroll.scrollTop + scroll.clientHeight + 200) / ROW));
    for (const [index, el] of shown) {
      if (index < first || index >= last) { el.remove(); shown.delete(index); }
    }
    for (let index = first; index < last; index++) {
      const row = at(index);
      if (load && row === undefined) { fetchPage(Math.floor(index / PAGE)); continue; }
      const known = shown.get(index);
      if (known && !force) continue;
      if (known && known.row === row) continue;
      const el = makeRow(row, index);
      el.row = row;
      if (known) {
        const focused = document.activeElement === known;
        known.replaceWith(el);
        if (focused) el.focus({ preventScroll: true });
      } else body.append(el);
      shown.set(index, el);
    }
  }

  function makeRow(row, index) {
    const el = h("div.vrow", { role: "row", "aria-rowindex": String(index + 2), tabindex: index === Math.max(current, 0) ? "0" : "-1", css: { top: `${index * ROW}px`, "grid-template-columns": template }, "data-open": open ? true : null },
      columns.map((c) => h(`div${c.num ? ".num" : ""}${c.mono ? ".mono" : ""}`, { role: "gridcell" }, c.cell(row))));
    if (open) el.addEventListener("click", (e) => { if (!e.target.closest("a,button")) { current = index; open(row, el); } });
    return el;
  }

  scroll.addEventListener("scroll", () => draw(), { passive: true });
  scroll.addEventListener("keydown", (e) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 };
    if (e.key === "Enter" && current >= 0 && open && !e.target.closest("a,button")) { open(at(current), shown.get(current)); e.preventDefault(); return; }
    if (!(e.key in steps) || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    current = Math.max(0, Math.min(total - 1, current + steps[e.key]));
    const top = current * ROW;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    else if (top + ROW + 34 > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + ROW + 34 - scroll.clientHeight;
    draw();
    for (const [index, el] of shown) el.tabIndex = index === current ? 0 : -1;
    shown.get(current)?.focus({ preventScroll: true });
  });
  const resized = new ResizeObserver(() => draw());
  resized.observe(scroll);

  return {
    root,
    /** What is said where there is no row. */
    empty(words) { note.textContent = words; },
    setRows(given) { rows = given; setTotal(given.length); },
    /** Ask again for what is in view; `start` goes to the top, for another filter. */
    async refresh(start = false) {
      generation++;
      const page = start ? 0 : Math.floor(scroll.scrollTop / ROW / PAGE);
      const mine = generation;
      const answer = await load(page * PAGE, PAGE);
      if (mine !== generation) return;
      pages = new Map([[page, answer.rows]]);
      if (start) { scroll.scrollTop = 0; current = -1; }
      setTotal(answer.total);
    },
    end() { resized.disconnect(); },
  };
}
