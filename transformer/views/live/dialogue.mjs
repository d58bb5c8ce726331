// The page of a chat: what was said by both sides, and the weights of an answer's word on the words themselves.
import {Chat, looksOf, wordsOf} from "./chat.mjs";
import {element} from "./kit.mjs";
import {Model} from "./model.mjs";
import {options, sentenceOf, writeWords} from "./pictures.mjs";
import {bytesOf, tensorsOf} from "./tensors.mjs";
import {Tokenizer} from "./tokenizer.mjs";
import {weightsOf} from "./words.mjs";

const NAMES = {you: "You", bot: "Bot"};
const INVITATION = "Choose a word of an answer to see where the bot looked when it wrote it.";
const DARKEST = 65;         // percent of colour behind a word with all the weight, so that it can still be read
const $ = id => document.getElementById(id);

export class Dialogue {
  constructor(data, weights) {
    const {config} = data, model = new Model(config, tensorsOf(data.tensors, bytesOf(weights)));
    this.chat = new Chat(model, new Tokenizer(data.tokenizer), data.longest);
    this.layOut(data, config);
    this.begin();
  }

  layOut({examples}, {N, h}) {
    const numbers = n => Array.from({length: n}, (_, i) => [i, i + 1]);
    options($("layer"), numbers(N), N - 1);
    options($("head"), [["mean", "mean of all"], ...numbers(h)], "mean");
    for (const id of ["layer", "head"]) $(id).addEventListener("change", () => this.draw());
    for (const text of examples) {
      const button = element("button", element("li", $("examples")), "", {type: "button"});
      writeWords(button, text, () => null);
      button.addEventListener("click", () => this.ask(text));
    }
    $("say").addEventListener("click", () => this.onSay());
    $("text").addEventListener("keydown", event => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.onSay();
    });
    $("anew").addEventListener("click", () => this.begin());
    for (const kind of ["focusin", "click"]) $("log").addEventListener(kind, event => this.choose(event.target));
    $("log").addEventListener("keydown", event => this.onKey(event));
  }

  begin() {
    this.chat.begin();
    Object.assign(this, {said: [], chosen: null, looked: null});
    $("log").replaceChildren();
    for (const id of ["error", "time", "heard"]) $(id).textContent = "";
    this.draw();
  }

  // No form: in the frame of a notebook none may be sent.
  onSay() {
    if (this.ask($("text").value)) $("text").value = "";
  }

  // Ask, and show the turn; true where there is an answer.
  ask(text) {
    const asked = text.replace(/\s+/g, " ").trim(), start = performance.now();
    if (!asked) return false;
    try {
      const {question, answer} = this.chat.say(asked), time = Math.ceil(performance.now() - start);
      this.add("you", question);
      this.add("bot", answer);
      $("time").textContent = `${answer.length - 1} tokens in ${time} ms`;
      $("error").textContent = "";
    } catch (problem) {
      $("error").textContent = problem.message;
      $("time").textContent = "";
      return false;
    }
    this.chosen = null;
    this.draw();
    $("heard").textContent = `${NAMES.bot}: ${this.said.at(-1).text.textContent}`;
    $("log").scrollTop = $("log").scrollHeight;
    return true;
  }

  // Show what one side said. A mark stands beside the text and looks unlike it: whoever types one gets its letters.
  add(who, ids) {
    const line = element("p", $("log"), "", {class: who}), tag = who === "bot" ? "button" : "span";
    const name = element("span", line, NAMES[who], {class: "who"}), mark = {class: "mark"}, cells = [];
    if (who === "bot") cells.push(element("span", line, "<s>", mark));
    const text = element("span", line, "", {class: "text", dir: "auto"});
    cells.push(...writeWords(text, this.chat.tokenizer.decode(ids), () => tag), element(tag, line, "</s>", mark));
    const {words} = wordsOf(this.chat.tokenizer, ids), own = {who, ids, name, text, cells, words};
    this.said.push(own);
    own.before = this.remembered().slice(0, -1);
  }

  // What the model still reads, up to now.
  remembered() {
    const asked = this.said.length % 2, count = 2 * (this.chat.turns.length - asked) + asked;
    return this.said.slice(this.said.length - count);
  }

  // Words of answers

  get buttons() {
    return [...$("log").querySelectorAll("button")];
  }

  choose(target) {
    const button = target.closest("button");
    if (!button || button === this.chosen) return;
    this.chosen = button;
    this.draw();
  }

  // Arrow keys move between the words of all answers; Escape chooses none.
  onKey(event) {
    const {buttons} = this, now = buttons.indexOf(event.target), last = buttons.length - 1;
    const next = {ArrowLeft: now - 1, ArrowUp: now - 1, ArrowRight: now + 1, ArrowDown: now + 1, Home: 0, End: last};
    if (event.key === "Escape") {
      this.chosen = null;
      this.draw();
    } else if (event.key in next && now >= 0) {
      event.preventDefault();
      buttons[Math.min(Math.max(next[event.key], 0), last)].focus();
    }
  }

  // {cells, words: all that was said until then, row: weights of the chosen word}
  look() {
    const own = this.said.find(({cells}) => cells.includes(this.chosen)), sides = [...own.before, own];
    if (this.looked?.own !== own) {
      const before = own.before.map(({ids}) => ids);
      this.looked = {own, maps: {decoder: looksOf(this.chat.model, this.chat.tokenizer, before, own.ids)}};
    }
    const head = $("head").value, layer = Number($("layer").value);
    const weights = weightsOf(this.looked.maps, "decoder", layer, head === "mean" ? head : Number(head));
    return {cells: sides.flatMap(({cells}) => cells), words: sides.flatMap(({words}) => words),
            row: weights[own.cells.indexOf(this.chosen)]};
  }

  draw() {
    const {buttons, said, chosen} = this, kept = this.remembered();
    const first = chosen ?? said.at(-1)?.cells.find(cell => cell.tagName === "BUTTON");
    for (const button of buttons) {
      button.setAttribute("aria-pressed", button === chosen);
      button.tabIndex = button === first ? 0 : -1;
    }
    for (const own of said) {
      own.name.textContent = NAMES[own.who] + (kept.includes(own) ? "" : " (forgotten)");
      for (const cell of own.cells) cell.style.background = "";
    }
    $("anew").disabled = !said.length;
    $("reading").textContent = said.length ? INVITATION : "";
    if (chosen) this.drawLook(this.look());
  }

  drawLook({cells, words, row}) {
    $("reading").textContent = sentenceOf(words[cells.indexOf(this.chosen)], row, words);
    cells.forEach((cell, i) => {
      const share = Math.round(DARKEST * Math.sqrt(row[i]));
      if (share) cell.style.background = `color-mix(in srgb, var(--line) ${share}%, transparent)`;
    });
  }
}

export function startChat() {
  return new Dialogue(JSON.parse($("data").textContent), $("weights").textContent);
}
