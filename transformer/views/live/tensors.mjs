// Numbers: half precision, products, norms. A tensor is {shape, data}, its data row after row.

// The bytes that a base64 text stands for.
export function bytesOf(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// One number in half precision: a sign, 5 bits of exponent, 10 bits of fraction.
export function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

// {name: tensor} from [[name, shape], ...] and the bytes of all their numbers in half precision.
export function tensorsOf(names, bytes) {
  const halves = new Uint16Array(bytes.buffer), table = new Float32Array(65536), tensors = {};
  for (let bits = 0; bits < 65536; bits++) table[bits] = fromHalf(bits);
  let start = 0;
  for (const [name, shape] of names) {
    const size = shape.reduce((product, n) => product * n, 1), data = new Float32Array(size);
    for (let i = 0; i < size; i++) data[i] = table[halves[start + i]];
    tensors[name] = {shape, data};
    start += size;
  }
  return tensors;
}

// W x + b: a matrix (n, m) and a vector of m numbers -> n numbers. Four sums at a time keep the processor busy.
export function linear(weight, x, bias) {
  const [n, m] = weight.shape, W = weight.data, y = new Float32Array(n), whole = m - m % 4;
  for (let i = 0, at = 0; i < n; i++) {
    let a = 0, b = 0, c = 0, d = 0, j = 0;
    for (; j < whole; j += 4, at += 4) {
      a += W[at] * x[j];
      b += W[at + 1] * x[j + 1];
      c += W[at + 2] * x[j + 2];
      d += W[at + 3] * x[j + 3];
    }
    for (; j < m; j++, at++) a += W[at] * x[j];
    y[i] = a + b + c + d + (bias ? bias.data[i] : 0);
  }
  return y;
}

export function add(x, y) {
  return x.map((value, i) => value + y[i]);
}

// Mean 0 and variance 1, then gain and bias (notebook 03).
export function layerNorm(x, gain, bias, eps = 1e-5) {
  let mean = 0, variance = 0;
  for (const value of x) mean += value / x.length;
  for (const value of x) variance += (value - mean) ** 2 / x.length;
  const scale = 1 / Math.sqrt(variance + eps);
  return x.map((value, i) => gain.data[i] * (value - mean) * scale + bias.data[i]);
}
