// Numbers that pages of every kind need: a vector times a matrix, products, probabilities.

// x W: n numbers and a matrix (n, m), row after row -> m numbers.
export function product(x, W) {
  return W[0].map((_, column) => x.reduce((sum, value, row) => sum + value * W[row][column], 0));
}

export function dot(x, y) {
  return x.reduce((sum, value, i) => sum + value * y[i], 0);
}

// Probabilities of scores (notebook 06).
export function softmax(z) {
  const p = new Float64Array(z.length);
  let largest = -Infinity, sum = 0;
  for (let i = 0; i < z.length; i++) largest = Math.max(largest, z[i]);
  for (let i = 0; i < z.length; i++) sum += p[i] = Math.exp(z[i] - largest);
  for (let i = 0; i < z.length; i++) p[i] /= sum;
  return p;
}
