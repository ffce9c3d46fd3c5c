/**
 * A clock that jumps from one thing that happens to the next, so that hours of a schedule take a millisecond. What
 * happens at one instant happens in the order in which it was asked for.
 */
export type VirtualTime = {
  now(): number;
  sleep(ms: number): Promise<void>;
  at(instant: number, act: () => void): void;
  /** Until nothing is left to happen. */
  run(): Promise<void>;
};

type Due = { readonly at: number; readonly order: number; readonly act: () => void };

export function createVirtualTime(start: number): VirtualTime {
  let now = start;
  let order = 0;
  const heap: Due[] = [];
  const at = (instant: number, act: () => void) => {
    order += 1;
    push(heap, { at: Math.max(now, Math.round(instant)), order, act });
  };
  return {
    now: () => now,
    at,
    sleep: (ms) => new Promise((done) => at(now + ms, done)),
    run: async () => {
      for (let next = pop(heap); next !== undefined; next = pop(heap)) {
        now = next.at;
        next.act();
        await settled();
      }
    },
  };
}

/** Resolves once no promise is left that could go on by itself. */
function settled(): Promise<void> {
  return new Promise((done) => setImmediate(done));
}

function isSooner(a: Due, b: Due): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

function push(heap: Due[], due: Due): void {
  heap.push(due);
  for (let place = heap.length - 1; place > 0; ) {
    const parent = (place - 1) >> 1;
    if (!swapIfSooner(heap, place, parent)) return;
    place = parent;
  }
}

function pop(heap: Due[]): Due | undefined {
  const [first] = heap;
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return first;
  heap[0] = last;
  for (let place = 0; ; ) {
    const left = 2 * place + 1;
    const right = left + 1;
    const [a, b] = [heap[left], heap[right]];
    if (a === undefined) return first;
    const child = b !== undefined && isSooner(b, a) ? right : left;
    if (!swapIfSooner(heap, child, place)) return first;
    place = child;
  }
}

function swapIfSooner(heap: Due[], child: number, parent: number): boolean {
  const [a, b] = [heap[child], heap[parent]];
  if (a === undefined || b === undefined || !isSooner(a, b)) return false;
  heap[child] = b;
  heap[parent] = a;
  return true;
}
