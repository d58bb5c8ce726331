// The first steps of a beam search as a tree; how likely each next token is comes from Python.
import {element, fit} from "./kit.mjs";

const ROW = 44;                // pixels of a row
const SVG = "http://www.w3.org/2000/svg";

// Of each step the K beginnings that are kept, and the best one dropped: [{p, path}, ...], p is log P.
export function levelsOf(table, K, steps) {
  let alive = [{p: 0, path: []}];
  return Array.from({length: steps}, () => {
    const longer = alive.flatMap(({p, path}) =>
      (table[path.join()] ?? []).map(([token, more]) => ({p: p + more, path: [...path, token]})));
    longer.sort((a, b) => b.p - a.p);
    alive = longer.slice(0, K);
    return longer.slice(0, K + 1);
  });
}

// The row of each beginning, by its tokens: leaves from the top, others between their extensions.
export function rowsOf(levels) {
  const known = levels.flat().map(({path}) => path), rows = {};
  let free = 0;
  const put = path => {
    const grows = longer => longer.length === path.length + 1 && longer.slice(0, -1).join() === path.join();
    const below = known.filter(grows);
    below.forEach(put);
    const sum = below.reduce((sum, longer) => sum + rows[longer.join()], 0);
    rows[path.join()] = below.length ? sum / below.length : free++;
  };
  put([]);
  return rows;
}

export function percent(p) {
  const share = 100 * Math.exp(p);
  return share >= 0.05 ? `${share.toFixed(1)} %` : "< 0.1 %";
}

class BeamTree {
  constructor(data) {
    Object.assign(this, data);
    const root = document.querySelector("main"), control = element("div", root, "", {class: "control"});
    const label = element("label", control, "Beginnings that are kept: ", {for: "K"});
    element("i", label, "K");
    label.append(" =");
    this.output = element("output", control, "", {for: "K"});
    this.slider = element("input", control, "", {
      type: "range", id: "K", min: 1, max: this.widest, step: 1, value: this.start,
    });
    const marks = element("div", control, "", {class: "marks"});
    for (let K = 1; K <= this.widest; K++) this.mark(marks, K);
    const heads = element("div", root, "", {class: "heads", "aria-hidden": "true"});
    for (let step = 0; step <= this.steps; step++) element("small", heads, step ? `step ${step}` : "");
    this.tree = element("div", root, "", {class: "tree", role: "img"});
    this.result = element("p", root, "", {class: "result", role: "status"});
    this.slider.addEventListener("input", () => this.draw());
    this.draw();
  }

  // A number under the slider that can be touched.
  mark(parent, K) {
    const button = element("button", parent, K, {type: "button", "aria-label": `keep ${K}`});
    button.addEventListener("click", () => {
      this.slider.value = K;
      this.draw();
    });
  }

  text(path) {
    return path.map(token => this.names[token]).join(" ");
  }

  draw() {
    const K = Number(this.slider.value), {steps, table, tree} = this;
    const levels = levelsOf(table, K, steps), rows = rowsOf(levels);
    const lowest = Math.max(...Object.values(rows)), height = ROW * (lowest + 1);
    const x = step => 100 * (step + 0.5) / (steps + 1), y = path => ROW * (rows[path.join()] + 0.5);
    this.output.textContent = K;
    this.slider.setAttribute("aria-valuetext", `K = ${K}`);
    tree.replaceChildren();
    tree.style.height = `${height}px`;
    const lines = document.createElementNS(SVG, "svg");
    lines.setAttribute("viewBox", `0 0 100 ${height}`);
    lines.setAttribute("preserveAspectRatio", "none");
    lines.setAttribute("aria-hidden", "true");
    tree.append(lines);
    this.node([], "start", "", x(0), y([]), "kept");
    levels.forEach((level, step) => level.forEach(({p, path}, rank) => {
      const state = rank === 0 ? "kept best" : rank < K ? "kept" : "dropped", from = path.slice(0, -1);
      const line = document.createElementNS(SVG, "line");
      const ends = {x1: x(step), y1: y(from), x2: x(step + 1), y2: y(path), class: state};
      for (const [name, value] of Object.entries(ends)) line.setAttribute(name, value);
      lines.append(line);
      this.node(path, this.names[path.at(-1)], percent(p), x(step + 1), y(path), state);
    }));
    const said = levels.map((level, step) =>
      `step ${step + 1}: ` + level.slice(0, K).map(({p, path}) => `${this.text(path)} ${percent(p)}`).join(", "));
    tree.setAttribute("aria-label", `Kept, ${said.join("; ")}`);
    const best = levels.at(-1)[0];
    const leads = `“${this.text(best.path)}” leads after ${steps} steps, with ${percent(best.p)}.`;
    this.result.textContent = `With K = ${K}, ${leads}${K === 1 ? " This is greedy search." : ""}`;
  }

  node(path, text, share, left, top, state) {
    const box = element("span", this.tree, "", {class: `node ${state}`});
    box.style.left = `${left}%`;
    box.style.top = `${top}px`;
    element("b", box, text);
    if (share) element("small", box, share);
  }
}

export function startBeamTree(data) {
  fit();
  return new BeamTree(data);
}
