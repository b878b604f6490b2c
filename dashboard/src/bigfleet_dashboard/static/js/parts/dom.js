// Elements from data. Texts are only ever set as text, so nothing a fleet says can become markup.

/** An element: h("a.class", {href, onclick, text, ...}, ...children). */
export function h(name, props = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const el = document.createElement(tag || "div");
  if (classes.length) el.className = classes.join(" ");
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "text") el.textContent = value;
    else if (key.startsWith("on")) el.addEventListener(key.slice(2), value);
    else if (key === "css") for (const [p, v] of Object.entries(value)) el.style.setProperty(p, v);
    else if (key === "class") el.className += ` ${value}`;
    else el.setAttribute(key, value === true ? "" : value);
  }
  append(el, children);
  return el;
}

export function append(el, children) {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    el.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replace what is inside. What looks the same stays the same element, and the focus stays where it
 * was: an update must not move a button that a user is about to press. */
export function fill(el, ...children) {
  const next = document.createDocumentFragment();
  append(next, children);
  const path = focusPath(el);
  const old = [...el.childNodes], fresh = [...next.childNodes];
  if (old.length === fresh.length) fresh.forEach((child, n) => { if (!old[n].isEqualNode(child)) old[n].replaceWith(child); });
  else el.replaceChildren(next);
  if (path) focusAt(el, path);
  return el;
}

/** Which descendant has the focus, as places among siblings. */
function focusPath(el) {
  let at = document.activeElement;
  if (!at || at === el || !el.contains(at)) return null;
  const path = [];
  for (; at !== el; at = at.parentElement) path.unshift([...at.parentElement.children].indexOf(at));
  return path;
}

function focusAt(el, path) {
  if (el.contains(document.activeElement)) return;
  path.reduce((at, n) => at?.children[n], el)?.focus({ preventScroll: true });
}

export function panel(title, tools, ...body) {
  const id = `panel-${title.toLowerCase().replace(/\W+/g, "-")}`;
  return h("section.panel", { "aria-labelledby": id },
    h("div.panel-head", {}, h("h2", { id, text: title }), tools),
    ...body);
}

/** A plain table: columns are {name, num, cell(row)}. */
export function table(columns, rows, { open, empty = "Nothing here.", label } = {}) {
  if (!rows.length) return h("p.empty", { text: empty });
  const head = h("tr", {}, columns.map((c) => h(c.num ? "th.num" : "th", { scope: "col", text: c.name })));
  const body = rows.map((row) => h(open ? "tr.link" : "tr", open ? { onclick: (e) => {
    if (!e.target.closest("a,button")) open(row);
  } } : {}, columns.map((c) => h(c.num ? "td.num" : "td", {}, c.cell(row)))));
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": label || "Table" },
    h("table", {}, h("thead", {}, head), h("tbody", {}, body)));
}

export function link(href, text) {
  return h("a", { href, "data-link": true, text });
}

export function chip(text, kind = "") {
  return h(`span.chip${kind ? `.${kind}` : ""}`, { text });
}

export function seg(label, options, chosen, pick) {
  const buttons = options.map(([value, text]) => h("button", { type: "button", "aria-pressed": String(value === chosen), text, onclick: () => {
    for (const b of buttons) b.setAttribute("aria-pressed", String(b === buttons[options.findIndex((o) => o[0] === value)]));
    pick(value);
  } }));
  return h("span", {}, h("span.seg-label", { text: label, "aria-hidden": "true" }), h("span.seg", { role: "group", "aria-label": label }, buttons));
}

export function select(label, options, chosen, pick) {
  const el = h("select", { "aria-label": label, onchange: () => pick(el.value) },
    options.map(([value, text]) => h("option", { value, text, selected: value === chosen })));
  return el;
}
