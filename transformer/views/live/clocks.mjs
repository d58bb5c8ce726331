// A position as the hands of a clock: hand i turns by omega[i] from one position to the next.
import {element, fit, number} from "./kit.mjs";
import {Clock, Slider} from "./clockwork.mjs";

// The row of the table: the sine and the cosine of each hand's angle.
export function row(position, omega) {
  return omega.flatMap(speed => [Math.sin(position * speed), Math.cos(position * speed)]);
}

class Clocks {
  constructor(data) {
    Object.assign(this, data);
    const root = document.querySelector("main");
    this.slider = new Slider(root, "position", "position", this.places, this.start, this.marked, () => this.draw());
    const faces = element("div", root, "", {class: "faces"});
    this.faces = this.omega.map((_, hand) => this.face(faces, hand));
    this.result = element("p", root, "", {class: "note", role: "status"});
    this.draw();
  }

  face(parent, hand) {
    const figure = element("figure", parent);
    element("small", figure, `hand ${hand}`);
    const clock = new Clock(figure, ["before", "now"]);
    return {clock, sine: element("small", figure), cosine: element("small", figure)};
  }

  draw() {
    const position = this.slider.value, values = row(position, this.omega);
    this.slider.show();
    this.faces.forEach(({clock, sine, cosine}, hand) => {
      const speed = this.omega[hand], [right, up] = values.slice(2 * hand).map(value => number(value, 2));
      clock.point([(position - 1) * speed, position * speed], `Hand ${hand}: sine ${right}, cosine ${up}`);
      sine.textContent = `sin ${right}`;
      cosine.textContent = `cos ${up}`;
    });
    this.result.textContent = `Position ${position.toLocaleString("en")} is these ${values.length} numbers. ` +
      "The pale hand is where each hand was one position before.";
  }
}

export function startClocks(data) {
  fit();
  return new Clocks(data);
}
