// Softmax over a few keys as they get wider, with and without the scale; the products come from Python.
import {element, fit, number, share, symbol} from "./kit.mjs";
import {softmax} from "./numbers.mjs";

// Weights of products q · k of a width: as they are, and divided by its root.
export function bothWeights(products, width) {
  return [1, Math.sqrt(width)].map(scale => {
    const scores = products.map(value => value / scale), weights = Array.from(softmax(scores));
    const largest = weights.indexOf(Math.max(...weights));
    return {scores, weights, largest};
  });
}

export function thousands(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function between({scores}) {
  return `scores from ${number(Math.min(...scores), 1)} to ${number(Math.max(...scores), 1)}`;
}

class Saturation {
  constructor(data) {
    Object.assign(this, data);
    const root = document.querySelector("main"), control = element("div", root, "", {class: "control"});
    const label = element("label", control, "Width of the keys: ", {for: "width"});
    symbol(label, "d", "k");
    label.append(" =");
    this.output = element("output", control, "", {for: "width"});
    this.slider = element("input", control, "", {type: "range", id: "width", min: 0, max: this.widths.length - 1,
                                                 step: 1, value: this.widths.indexOf(this.start)});
    const marks = element("div", control, "", {class: "marks"});
    for (const width of this.marked) this.mark(marks, width);
    const charts = element("div", root, "", {class: "charts"});
    this.charts = ["without the scale", "divided by √"].map((title, i) => this.chart(charts, title, i));
    this.result = element("p", root, "", {class: "result", role: "status"});
    this.slider.addEventListener("input", () => this.draw());
    this.draw();
  }

  // A width under the slider that can be touched.
  mark(parent, width) {
    const button = element("button", parent, thousands(width), {type: "button", "aria-label": `width ${width}`});
    const place = this.widths.indexOf(width), last = this.widths.length - 1;
    button.style.left = `calc(0.5rem + ${place / last} * (100% - 1rem))`;
    button.style.translate = `${-100 * (place === last ? 0.8 : 0.5)}%`;
    button.addEventListener("click", () => {
      this.slider.value = place;
      this.draw();
    });
  }

  chart(parent, title, scaled) {
    const figure = element("figure", parent), caption = element("figcaption", figure, title);
    if (scaled) symbol(caption, "d", "k");
    const range = element("small", caption), plot = element("div", figure, "", {class: "plot", role: "img"});
    const bars = this.products[0].map(() => {
      const bar = element("i", plot);
      return {bar, text: element("b", bar)};
    });
    const keys = element("div", figure, "", {class: "keys", "aria-hidden": "true"});
    bars.forEach((_, key) => element("span", keys, key + 1));
    element("small", figure, "key", {class: "axis", "aria-hidden": "true"});
    return {title, plot, range, bars};
  }

  draw() {
    const place = Number(this.slider.value), width = this.widths[place];
    const both = bothWeights(this.products[place], width);
    this.output.textContent = thousands(width);
    this.slider.setAttribute("aria-valuetext", `width ${width}`);
    both.forEach((result, i) => {
      const {title, plot, range, bars} = this.charts[i];
      range.textContent = between(result);
      bars.forEach(({bar, text}, key) => {
        bar.style.height = `${100 * result.weights[key]}%`;
        text.textContent = key === result.largest ? number(result.weights[key], 2) : "";
      });
      const list = result.weights.map((weight, key) => `key ${key + 1}: ${number(weight, 2)}`).join(", ");
      plot.setAttribute("aria-label", `Weights ${title}${i ? "d_k" : ""}: ${list}`);
    });
    const [without, scaled] = both.map(({weights, largest}) => share(weights[largest]));
    this.result.textContent = `Of ${both[0].weights.length} random keys, key ${both[0].largest + 1} takes ${without} ` +
      `without the scale and ${scaled} with it.`;
  }
}

export function startSaturation(data) {
  fit();
  return new Saturation(data);
}
