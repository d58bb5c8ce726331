// What every page is made with: its elements, numbers as text, and a frame as high as what stands in it.

export function element(name, parent, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}

// A variable of a formula: d with the index k.
export function symbol(parent, name, index) {
  const made = element("i", parent, name);
  element("sub", made, index);
  return made;
}

// A number with its digits and a real minus; trimmed: without zeros at its end.
export function number(value, digits, trimmed = false) {
  const text = Math.abs(value).toFixed(digits), short = trimmed ? String(Number(text)) : text;
  return value < 0 && Number(text) !== 0 ? `−${short}` : short;
}

// (4, 0)
export function vector(values, digits = 2, trimmed = true) {
  return `(${values.map(value => number(value, digits, trimmed)).join(", ")})`;
}

// Shares of a whole in percent: whole numbers, and "under 1 %" for what would read as nothing.
export function share(weight) {
  return weight < 0.01 ? "under 1 %" : `${Math.round(100 * weight)} %`;
}

// In a frame: say how high the page is, whenever that changes and whenever the page around asks; it asks with the name
// of its own colours ("" for the machine's), which the page then takes.
export function fit() {
  if (parent === window) return;
  const tell = () => {
    const {height} = document.documentElement.getBoundingClientRect();
    parent.postMessage({height: Math.ceil(height)}, "*");
  };
  new ResizeObserver(tell).observe(document.documentElement);
  addEventListener("message", ({source, data}) => {
    if (source !== parent) return;
    const dark = /dark|false/.test(data), light = /light|true/.test(data);
    document.documentElement.style.colorScheme = dark ? "dark" : light ? "light" : "";
    tell();
  });
}
