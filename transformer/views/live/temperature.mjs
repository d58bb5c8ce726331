// Softmax over a few words: logits divided by a temperature, and what becomes of the ratio of two probabilities.
import {element, fit, number, share} from "./kit.mjs";
import {Slider} from "./clockwork.mjs";
import {softmax} from "./numbers.mjs";

export function probabilities(logits, temperature) {
  return Array.from(softmax(logits.map(z => z / temperature)));
}

class Temperature {
  constructor(data) {
    Object.assign(this, data);
    const root = document.querySelector("main");
    this.slider = new Slider(root, "temperature", "temperature", this.temperatures, 1, this.marked, () => this.draw());
    const table = element("div", root, "", {class: "bars"});
    this.bars = this.words.map((word, i) => {
      element("span", table, word);
      element("small", table, number(this.logits[i], 1));
      const bar = element("i", element("div", table, "", {class: "track"}));
      return {bar, text: element("span", table)};
    });
    this.result = element("p", root, "", {class: "result", role: "status"});
    this.draw();
  }

  draw() {
    this.slider.show();
    const p = probabilities(this.logits, this.slider.value), [first, second] = this.words;
    this.bars.forEach(({bar, text}, i) => {
      bar.style.width = `${100 * p[i]}%`;
      text.textContent = share(p[i]);
    });
    this.result.textContent = `“${first}” is ${number(p[0] / p[1], 1, true)} times as likely as “${second}”.`;
  }
}

export function startTemperature(data) {
  fit();
  return new Temperature(data);
}
