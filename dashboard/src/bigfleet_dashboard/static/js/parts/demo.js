// Only where the fleet is a demo: scenarios to play. The page asks the demo, never the control plane.
import { fill, h } from "./dom.js";
import { get, post } from "./api.js";

export function demoBar(root) {
  const said = h("span.sr", { role: "status" });
  async function draw() {
    let told;
    try { told = await get("/demo"); } catch { return; }
    fill(root, h("section.demo", { "aria-label": "Demo" },
      h("p", {}, h("b", { text: "Demo" }), " Simulated machines and clusters. Try:"),
      told.scenarios.map((s) => h("button.ghost", { type: "button", title: `${s.title}: ${s.watch}`, "data-playing": s.playing, "data-scenario": s.name, text: s.short, onclick: () => play(s) })), said));
  }
  async function play(scenario) {
    try {
      await post("/demo", { name: scenario.name });
      said.textContent = `${scenario.title}. ${scenario.watch}`;
    } catch (error) { said.textContent = error.message; }
    draw();
  }
  draw();
  setInterval(() => { if (!document.hidden) draw(); }, 5000);
}
