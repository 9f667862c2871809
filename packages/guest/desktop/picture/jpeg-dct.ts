// The cosine transform of a block of eight by eight, after Arai, Agui and Nakajima: five multiplications
// a line. The scale that it leaves in each coefficient is taken out where they are quantised.

const scales = [
  1.0, 1.387039845, 1.306562965, 1.175875602, 1.0, 0.785694958, 0.5411961, 0.275899379,
];

/** What to multiply a transformed coefficient by. */
export function quantFactors(steps: Uint8Array): Float32Array {
  return Float32Array.from(steps, (step, i) => {
    const row = scales[i >> 3] as number;
    const column = scales[i & 7] as number;
    return 1 / (step * row * column * 8);
  });
}

/** In place. */
export function transform(block: Float32Array): void {
  for (let i = 0; i < 64; i += 8) line(block, i, 1);
  for (let i = 0; i < 8; i += 1) line(block, i, 8);
}

function line(data: Float32Array, at: number, step: number): void {
  const i1 = at + step;
  const i2 = i1 + step;
  const i3 = i2 + step;
  const i4 = i3 + step;
  const i5 = i4 + step;
  const i6 = i5 + step;
  const i7 = i6 + step;
  const d0 = data[at] as number;
  const d1 = data[i1] as number;
  const d2 = data[i2] as number;
  const d3 = data[i3] as number;
  const d4 = data[i4] as number;
  const d5 = data[i5] as number;
  const d6 = data[i6] as number;
  const d7 = data[i7] as number;

  const outerSum = d0 + d7;
  const outerDifference = d0 - d7;
  const secondSum = d1 + d6;
  const secondDifference = d1 - d6;
  const thirdSum = d2 + d5;
  const thirdDifference = d2 - d5;
  const innerSum = d3 + d4;
  const innerDifference = d3 - d4;

  const even0 = outerSum + innerSum;
  const even3 = outerSum - innerSum;
  const even1 = secondSum + thirdSum;
  const even2 = secondSum - thirdSum;
  data[at] = even0 + even1;
  data[i4] = even0 - even1;
  const turned = (even2 + even3) * Math.SQRT1_2;
  data[i2] = even3 + turned;
  data[i6] = even3 - turned;

  const odd0 = innerDifference + thirdDifference;
  const odd1 = thirdDifference + secondDifference;
  const odd2 = secondDifference + outerDifference;
  const shared = (odd0 - odd2) * 0.382683433;
  const low = 0.5411961 * odd0 + shared;
  const high = 1.306562965 * odd2 + shared;
  const middle = odd1 * Math.SQRT1_2;
  const sum = outerDifference + middle;
  const difference = outerDifference - middle;
  data[i5] = difference + low;
  data[i3] = difference - low;
  data[i1] = sum + high;
  data[i7] = sum - high;
}
