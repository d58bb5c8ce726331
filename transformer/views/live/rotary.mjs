// A query and a key, each turned by its own position: the angles between their hands tell the distance alone.
import {element, fit, number} from "./kit.mjs";
import {Clock, Slider} from "./clockwork.mjs";

// Angles of hands at a position.
export function turned(angles, position, omega) {
  return angles.map((angle, i) => angle + position * omega[i]);
}

// Hands of length 1: the score is the sum of the cosines of the angles between them.
export function score(query, key) {
  return query.reduce((sum, angle, i) => sum + Math.cos(angle - key[i]), 0);
}

// The smaller angle between two hands, in degrees.
export function apart(a, b) {
  return 180 / Math.PI * Math.acos(Math.max(-1, Math.min(1, Math.cos(a - b))));
}

class Rotary {
  constructor(data) {
    Object.assign(this, data);
    const root = document.querySelector("main"), draw = () => this.draw();
    const sliders = element("div", root, "", {class: "sliders"});
    this.place = new Slider(sliders, "query at position", "place", this.places, this.start.place, [], draw);
    this.back = new Slider(sliders, "key so many words before", "back", this.backs, this.start.back, [], draw);
    const faces = element("div", root, "", {class: "faces"});
    this.faces = this.omega.map((_, hand) => this.face(faces, hand));
    this.result = element("p", root, "", {class: "result", role: "status"});
    const legend = element("p", root, "", {class: "note"});
    element("b", legend, "Thick", {class: "query"});
    legend.append(": the query's hands. ");
    element("b", legend, "Thin", {class: "key"});
    legend.append(": the key's.");
    this.draw();
  }

  face(parent, hand) {
    const figure = element("figure", parent);
    element("small", figure, `hand ${hand}`);
    return {clock: new Clock(figure, ["query", "key"]), angle: element("small", figure)};
  }

  draw() {
    const place = this.place.value, other = place - this.back.value;
    const query = turned(this.query, place, this.omega), key = turned(this.key, other, this.omega);
    this.place.show();
    this.back.show();
    this.faces.forEach(({clock, angle}, hand) => {
      const between = `${Math.round(apart(query[hand], key[hand]))}°`;
      clock.point([query[hand], key[hand]], `Hand ${hand}: ${between} between query and key`);
      angle.textContent = `${between} apart`;
    });
    this.result.textContent = `Query at ${place}, key at ${other}: their score is ${number(score(query, key), 2)}.`;
  }
}

export function startRotary(data) {
  fit();
  return new Rotary(data);
}
