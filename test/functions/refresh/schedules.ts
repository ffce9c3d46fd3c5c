import { delayOf } from "../../../functions/contract/refresh-limits.ts";
import type { DebounceRules } from "../../../functions/refresh/debounce.ts";
import { createRandom, type Outcome, type Sabotage, type Schedule, simulate } from "./simulation.ts";

/**
 * The claims of the refresh path over random schedules of the real code: nothing is lost, nothing starves, a storm
 * makes few refreshes, generations only rise.
 */

/** Of the tests that use them together; each file runs in a process of its own. */
export const SCHEDULES = 20_000;
/** Steps, polling and the margin of the delay; what a schedule without crashes and failures adds to its bound. */
const SLACK_MS = 1_000;

function scheduleOf(seed: number): Schedule {
  const random = createRandom(seed);
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  const sometimes = (share: number, value: number) => (random() < share ? value : 0);
  const windowMs = [100, 500, 1_000, 5_000][between(0, 3)] ?? 500;
  const rules: DebounceRules = {
    windowMs,
    delayMs: delayOf(windowMs / 1_000) * 1_000,
    longestWaitMs: windowMs * between(2, 10),
    graceMs: 30_000,
  };
  // From one burst inside a window to a few changes over many; or a stream that never leaves a window of quiet.
  const stream = random() < 0.05;
  const span = windowMs * (stream ? 30 : ([1, 4, 20][between(0, 2)] ?? 1));
  const changes = Array.from({ length: stream ? between(40, 60) : between(1, 10) }, (_, index) => ({
    at: stream ? Math.floor((index * span) / 40) : Math.floor(random() * span),
    server: stream ? 0 : between(0, 2),
    copies: random() < 0.2 ? between(2, 5) : 1,
  }));
  return {
    seed,
    servers: between(1, 3),
    rules,
    changes,
    requests: Array.from({ length: sometimes(0.2, between(1, 2)) }, () => Math.floor(random() * span)),
    crash: sometimes(0.4, 0.05),
    failing: sometimes(0.2, 0.3),
    hanging: sometimes(0.1, 0.3),
    listMs: sometimes(0.5, windowMs * between(1, 4)),
    redelivery: sometimes(0.3, 0.2),
    amnesia: sometimes(0.1, 0.2),
    skewMs: sometimes(0.3, 120_000),
  };
}

/** What is wrong with the outcome, one line each. */
function breaches(schedule: Schedule, outcome: Outcome): readonly string[] {
  return [
    ...findOverrun(outcome),
    ...findLost(outcome),
    ...findFallen(outcome),
    ...findStarved(schedule, outcome),
    ...findStampede(schedule, outcome),
  ];
}

/** Each function ends in its time, or its whole batch would come again only after the visibility timeout. */
function findOverrun({ overruns }: Outcome): readonly string[] {
  return overruns === 0 ? [] : [`${overruns} functions ran out of time`];
}

function findLost({ publications, offered, told }: Outcome): readonly string[] {
  const last = publications.at(-1);
  const notified = new Set(told.map(({ server }) => server));
  return [...offered]
    .filter(([server, version]) => notified.has(server) && last?.versions.get(server) !== version)
    .map(([server, version]) => `${server} offers ${version}, the catalog has ${last?.versions.get(server)}`);
}

function findFallen({ publications }: Outcome): readonly string[] {
  return publications.flatMap(({ generation, versions }, index) => {
    const before = publications[index - 1];
    const older = [...versions].filter(([server, version]) => version < (before?.versions.get(server) ?? 0));
    if (generation === index + 1 && older.length === 0) return [];
    return [
      `publication ${index + 1} is generation ${generation} with older lists of ${older.map(([server]) => server)}`,
    ];
  });
}

/** Where nothing fails, a change is published within the longest wait, the delay and the fetching itself. */
function findStarved({ rules, listMs, redelivery, amnesia }: Schedule, outcome: Outcome): readonly string[] {
  if (outcome.crashes + outcome.failures > 0 || redelivery + amnesia > 0) return [];
  // A fetch may be under way when the message comes, and one more, of a request, may make it begin again.
  const bound = rules.longestWaitMs + rules.delayMs + rules.windowMs + 4 * listMs + SLACK_MS;
  return outcome.told.flatMap(({ server, at, version }) => {
    const answered = outcome.publications.find(({ versions }) => (versions.get(server) ?? 0) >= version)?.at;
    return answered !== undefined && answered - at <= bound
      ? []
      : [`${server} waited ${(answered ?? Infinity) - at} ms`];
  });
}

/** Fetches that messages caused, at most one for each window of the time in which notifications came, and one. */
function findStampede({ rules, skewMs }: Schedule, { publications, told, failures }: Outcome): readonly string[] {
  // A fetch that fails answers nothing, and a function whose clock is minutes behind takes an answer for one to come.
  if (failures > 0 || skewMs > 0) return [];
  return [...new Set(told.map(({ server }) => server))].flatMap((server) => {
    const times = told.filter((each) => each.server === server).map(({ at }) => at);
    const most = Math.ceil((Math.max(...times) - Math.min(...times)) / rules.windowMs) + 1;
    const made = publications.filter(
      ({ cause, fetched, servers }) => cause === "notification" && servers.includes(server) && fetched.has(server),
    ).length;
    return made <= most ? [] : [`${server} was fetched ${made} times, at most ${most} wanted`];
  });
}

/** Where the claims do not hold, for the schedules of these numbers; stops once that is plain. */
export async function findBroken(seeds: Iterable<number>, sabotage?: Sabotage): Promise<readonly string[]> {
  const broken: string[] = [];
  for (const seed of seeds) {
    const schedule = scheduleOf(seed);
    const outcome = await simulate(schedule, sabotage);
    for (const breach of breaches(schedule, outcome)) broken.push(`schedule ${seed}: ${breach}`);
    if (broken.length >= 20) break;
  }
  return broken;
}

export function* range(from: number, to: number): Iterable<number> {
  for (let number = from; number < to; number += 1) yield number;
}
