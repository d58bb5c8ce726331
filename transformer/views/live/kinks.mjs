// A small network that follows a curve: the more units it has, the more often its line may bend.
import {element, fit} from "./kit.mjs";
import {Slider, drawn} from "./clockwork.mjs";

// max(0, x W_1 + b_1) W_2 + b_2 of one number, with W_1 = 1: each unit begins where x + b_1 is 0.
export function network(x, {b_1, W_2, b_2}) {
  return b_1.reduce((sum, bias, i) => sum + W_2[i] * Math.max(0, x + bias), b_2);
}

// The mean squared distance from the curve.
export function error(xs, ys, weights) {
  return xs.reduce((sum, x, i) => sum + (network(x, weights) - ys[i]) ** 2, 0) / xs.length;
}

class Kinks {
  constructor(data) {
    Object.assign(this, data);
    const root = document.querySelector("main"), widths = this.networks.map(({b_1}) => b_1.length);
    this.slider = new Slider(root, "hidden units", "units", widths, this.start, this.marked, () => this.draw());
    const [left, right] = [this.xs[0], this.xs[this.xs.length - 1]];
    const box = `${left} -1.3 ${right - left} 2.6`;
    this.svg = drawn("svg", root, {viewBox: box, preserveAspectRatio: "none", class: "curve", role: "img"});
    drawn("polyline", this.svg, {class: "wave", points: this.points(x => this.ys[this.xs.indexOf(x)])});
    this.line = drawn("polyline", this.svg, {class: "line"});
    this.dots = drawn("g", this.svg, {});
    this.result = element("p", root, "", {class: "result", role: "status"});
    this.draw();
  }

  points(height) {
    return this.xs.map(x => `${x},${-height(x)}`).join(" ");
  }

  draw() {
    this.slider.show();
    const weights = this.networks[Number(this.slider.input.value)], units = weights.b_1.length;
    this.line.setAttribute("points", this.points(x => network(x, weights)));
    this.dots.replaceChildren();
    for (const bias of weights.b_1) {
      const at = `M${-bias} ${-network(-bias, weights)}h0`;  // a line of no length, drawn as its round end
      drawn("path", this.dots, {class: "dot", d: at});
    }
    const off = Number(error(this.xs, this.ys, weights).toPrecision(2)), plural = units === 1 ? "" : "s";
    this.svg.setAttribute("aria-label", `A wave, and the line of ${units} unit${plural}`);
    this.result.textContent = `${units} unit${plural}: the mean squared error is ${off}.`;
  }
}

export function startKinks(data) {
  fit();
  return new Kinks(data);
}
