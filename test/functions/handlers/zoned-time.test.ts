import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isTimeZone, parsePoint } from "../../../functions/handlers/zoned-time.ts";

const show = (text: string, zone?: string) => {
  const point = parsePoint(text, zone);
  return point === undefined ? undefined : `${point.kind} ${new Date(point.time).toISOString()}`;
};

describe("a point in time", () => {
  test.each([
    ["2026-12-01", undefined, "date 2026-12-01T00:00:00.000Z"],
    ["2024-02-29", "Asia/Tokyo", "date 2024-02-29T00:00:00.000Z"],
    ["2026-12-01T09:30", undefined, "floating 2026-12-01T09:30:00.000Z"],
    ["2026-12-01 09:30:15", undefined, "floating 2026-12-01T09:30:15.000Z"],
    ["2026-12-01T09:30Z", undefined, "instant 2026-12-01T09:30:00.000Z"],
    ["2026-12-01T09:30+05:30", undefined, "instant 2026-12-01T04:00:00.000Z"],
    ["2026-12-01T00:30+14:00", "Europe/Paris", "instant 2026-11-30T10:30:00.000Z"],
    ["2026-12-01T09:30-03:00", undefined, "instant 2026-12-01T12:30:00.000Z"],
    ["2026-12-01T09:30", "Europe/Paris", "instant 2026-12-01T08:30:00.000Z"],
    ["2026-07-01T09:30", "Europe/Paris", "instant 2026-07-01T07:30:00.000Z"],
    ["2026-12-01T09:30", "Asia/Kathmandu", "instant 2026-12-01T03:45:00.000Z"],
    ["2026-12-01T09:30", "UTC", "instant 2026-12-01T09:30:00.000Z"],
  ])("%s in %s is %s", (text, zone, shown) => {
    expect(show(text, zone)).toBe(shown);
  });

  test.each([
    ["an hour skipped in spring counts on from before", "2026-03-29T02:30", "Europe/Paris", "2026-03-29T01:30:00.000Z"],
    ["the minute before the gap", "2026-03-29T01:59", "Europe/Paris", "2026-03-29T00:59:00.000Z"],
    ["the minute after the gap", "2026-03-29T03:00", "Europe/Paris", "2026-03-29T01:00:00.000Z"],
    ["an hour that comes twice is the first", "2026-10-25T02:30", "Europe/Paris", "2026-10-25T00:30:00.000Z"],
    ["west of Greenwich, skipped", "2026-03-08T02:30", "America/New_York", "2026-03-08T07:30:00.000Z"],
    ["west of Greenwich, twice", "2026-11-01T01:30", "America/New_York", "2026-11-01T05:30:00.000Z"],
    ["a change of half an hour", "2026-10-04T02:15", "Australia/Lord_Howe", "2026-10-03T15:45:00.000Z"],
    ["a day that Samoa left out", "2011-12-30T12:00", "Pacific/Apia", "2011-12-30T22:00:00.000Z"],
    ["summer time in the south", "2026-04-05T02:30", "Australia/Sydney", "2026-04-04T15:30:00.000Z"],
  ])("%s", (_, text, zone, instant) => {
    expect(show(text, zone)).toBe(`instant ${instant}`);
  });

  test.each([
    ...["", "tomorrow", "2026-13-01", "2026-02-29", "2026-04-31", "2026-00-10", "1899-12-31", "2026-1-1", "20261201"],
    ...["2026-12-01T24:00", "2026-12-01T09:60", "2026-12-01T09:30:60", "2026-12-01T9:30", "2026-12-01T09:30z"],
    ...[
      "2026-12-01T09:30+15:00",
      "2026-12-01T09:30+0100",
      "2026-12-01T09:30+01:60",
      "2026-12-01Z",
      "2026-12-01T09:30\n",
    ],
    ...["２０２６-12-01", "2026-12-01T09:30 Europe/Paris", " 2026-12-01", "2026-12-01T09:30.5"],
  ])("%j is none", (text) => {
    expect(parsePoint(text, "Europe/Paris")).toBeUndefined();
  });

  test("in a zone shows the wall clock that was asked for, except in a gap", () => {
    const zones = fc.constantFrom(
      "Europe/Paris",
      "America/New_York",
      "Asia/Kolkata",
      "Pacific/Auckland",
      "America/Sao_Paulo",
    );
    const minute = fc.integer({ min: Date.UTC(1990, 0, 1) / 60_000, max: Date.UTC(2035, 0, 1) / 60_000 });
    fc.assert(
      fc.property(minute, zones, (minutes, zone) => {
        const text = new Date(minutes * 60_000).toISOString().slice(0, 16);
        const point = parsePoint(text, zone);
        const shown = new Date(point?.time ?? 0)
          .toLocaleString("sv-SE", { timeZone: zone })
          .slice(0, 16)
          .replace(" ", "T");
        const later = Date.parse(`${shown}Z`) - Date.parse(`${text}Z`);
        expect([0, 3_600_000]).toContain(later);
        if (later > 0) expect(Number(text.slice(11, 13))).toBeLessThan(4);
      }),
      { numRuns: 300 },
    );
  });
});

describe("a time zone", () => {
  test.each(["Europe/Paris", "UTC", "America/Argentina/Buenos_Aires"])("%s is known", (name) => {
    expect(isTimeZone(name)).toBe(true);
  });

  test.each(["", "Mars/Olympus", "Europe/", "Paris", "Europe/Paris\r\nX:1", "__proto__"])("%j is not", (name) => {
    expect(isTimeZone(name)).toBe(false);
  });
});
