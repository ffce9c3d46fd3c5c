/**
 * Points in time as people write them. With an offset or a zone they are exact; without either they are "floating"
 * (RFC 5545, 3.3.5): the same wall clock wherever the calendar is read.
 */

export type PointInTime =
  | { readonly kind: "date"; readonly time: number }
  | { readonly kind: "instant"; readonly time: number }
  | { readonly kind: "floating"; readonly time: number };

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const DATE_TIME = /^(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2})(?::(\d{2}))?(Z|[+-]\d{2}:\d{2})?$/;

/**
 * Undefined when the text is no date (`2026-12-01`) and no date with time (`2026-12-01T09:30`, seconds and offset
 * optional).
 */
export function parsePoint(text: string, timeZone: string | undefined): PointInTime | undefined {
  const date = DATE.exec(text);
  if (date) return withKind("date", wallClock(date.slice(1, 4)));
  const dateTime = DATE_TIME.exec(text);
  if (!dateTime) return undefined;
  const wall = wallClock(dateTime.slice(1, 7));
  if (wall === undefined) return undefined;
  const offset = dateTime[7];
  if (offset !== undefined) return withKind("instant", minusOffset(wall, offset));
  return timeZone === undefined
    ? { kind: "floating", time: wall }
    : { kind: "instant", time: toInstant(wall, timeZone) };
}

/** True when the runtime knows the IANA name. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    // RangeError is how Intl says that it does not know the name.
    return false;
  }
}

function withKind(kind: "date" | "instant", time: number | undefined): PointInTime | undefined {
  return time === undefined ? undefined : { kind, time };
}

/** Epoch ms of the wall clock read as UTC; undefined for a day or an hour that no calendar has. */
function wallClock(parts: readonly (string | undefined)[]): number | undefined {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.map((part) => Number(part ?? 0));
  const time = Date.UTC(year, month - 1, day, hour, minute, second);
  const back = new Date(time);
  const real = back.getUTCMonth() === month - 1 && back.getUTCDate() === day && hour < 24 && minute < 60 && second < 60;
  return real && year >= 1900 ? time : undefined;
}

function minusOffset(wall: number, offset: string): number | undefined {
  if (offset === "Z") return wall;
  const hours = Number(offset.slice(1, 3));
  const minutes = Number(offset.slice(4, 6));
  if (hours > 14 || minutes > 59) return undefined;
  const size = (hours * 60 + minutes) * 60_000;
  return offset.startsWith("-") ? wall + size : wall - size;
}

/**
 * The instant at which a clock on the wall in `timeZone` shows `wall`. An hour that is skipped in spring counts on
 * from before the change, one that comes twice in autumn is the first of the two.
 */
function toInstant(wall: number, timeZone: string): number {
  const before = wall - offsetAt(wall - 24 * 3600_000, timeZone);
  const after = wall - offsetAt(wall + 24 * 3600_000, timeZone);
  return [before, after].find((instant) => instant + offsetAt(instant, timeZone) === wall) ?? before;
}

/** Milliseconds that the zone is ahead of UTC at an instant. */
function offsetAt(instant: number, timeZone: string): number {
  const whole = Math.floor(instant / 1000) * 1000;
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  }).formatToParts(whole);
  const value = (type: string) => Number(parts.find((part) => part.type === type)?.value);
  const shown = [
    value("year"),
    value("month") - 1,
    value("day"),
    value("hour"),
    value("minute"),
    value("second"),
  ] as const;
  return Date.UTC(...shown) - whole;
}
