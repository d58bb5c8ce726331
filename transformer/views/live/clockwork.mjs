// What pages with clocks are made with: a slider that has marks, and a clock with its hands.
import {element} from "./kit.mjs";

const SVG = "http://www.w3.org/2000/svg";

export function drawn(name, parent, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}

// Angles as on a clock: from twelve, clockwise.
export class Clock {
  constructor(parent, hands) {
    this.svg = drawn("svg", parent, {viewBox: "-1.1 -1.1 2.2 2.2", class: "clock", role: "img"});
    drawn("circle", this.svg, {r: 1});
    this.hands = hands.map(name => drawn("line", this.svg, {class: name}));
  }

  point(angles, text) {
    angles.forEach((angle, i) => {
      this.hands[i].setAttribute("x2", Math.sin(angle));
      this.hands[i].setAttribute("y2", -Math.cos(angle));
    });
    this.svg.setAttribute("aria-label", text);
  }
}

// A slider over a list of values, some of which can be touched below it; `value` is the chosen one.
export class Slider {
  constructor(parent, name, id, values, start, marked, changed) {
    this.values = values;
    this.name = name;
    const control = element("div", parent, "", {class: "control"});
    element("label", control, `${name}:`, {for: id});
    this.output = element("output", control, "", {for: id});
    this.input = element("input", control, "", {type: "range", id, min: 0, max: values.length - 1, step: 1,
                                                value: values.indexOf(start)});
    const marks = element("div", control, "", {class: "marks"});
    for (const value of marked) this.mark(marks, value, changed);
    this.input.addEventListener("input", changed);
    this.show();
  }

  get value() {
    return this.values[Number(this.input.value)];
  }

  mark(parent, value, changed) {
    const text = value.toLocaleString("en"), place = this.values.indexOf(value) / (this.values.length - 1);
    const button = element("button", parent, text, {type: "button", "aria-label": `${this.name} ${text}`});
    button.style.left = `calc(0.5rem + ${place} * (100% - 1rem))`;
    button.style.translate = `${-100 * (0.2 + 0.6 * place)}%`;
    button.addEventListener("click", () => {
      this.input.value = this.values.indexOf(value);
      changed();
    });
  }

  show() {
    this.output.textContent = this.value.toLocaleString("en");
    this.input.setAttribute("aria-valuetext", `${this.name} ${this.output.textContent}`);
  }
}
