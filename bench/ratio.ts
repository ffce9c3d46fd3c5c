/** Interleaved measuring of two synchronous acts: the median of the ratios is what a busy machine disturbs least. */
export function measureRatio(
  act: () => unknown,
  yardstick: () => unknown,
  { rounds, repeats }: { readonly rounds: number; readonly repeats: number },
): number {
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const base = timeOf(yardstick, repeats);
    ratios.push(timeOf(act, repeats) / base);
  }
  return ratios.sort((a, b) => a - b)[Math.floor(rounds / 2)] ?? Number.NaN;
}

function timeOf(act: () => unknown, repeats: number): number {
  const started = performance.now();
  for (let repeat = 0; repeat < repeats; repeat += 1) act();
  return performance.now() - started;
}
