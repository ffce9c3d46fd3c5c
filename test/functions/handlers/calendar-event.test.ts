import { spawnSync } from "node:child_process";
import fc from "fast-check";
import ICAL from "ical.js";
import { describe, expect, test } from "vitest";
import { calendarEvent } from "../../../functions/handlers/calendar-event.ts";
import { callHandler, NOW, refusalsOf } from "./call-handler.ts";

type Given = Readonly<Record<string, unknown>>;

const EVENT = { title: "Release meeting", start: "2026-12-03T14:00", time_zone: "Europe/Paris" };
const textOf = (given: Given) => callHandler(calendarEvent, { ...EVENT, ...given }).text;
const pathsOf = (given: Given) => refusalsOf(calendarEvent, { ...EVENT, ...given }).map(({ path }) => path);

/** Read by a parser that is not the writer's. */
function read(given: Given) {
  const calendar = new ICAL.Component(ICAL.parse(textOf(given)));
  const [event, ...others] = calendar.getAllSubcomponents("vevent");
  if (event === undefined || others.length > 0) throw new Error("one event expected");
  const property = (name: string) => event.getFirstPropertyValue(name)?.toString();
  return { calendar, event, property };
}

const linesOf = (given: Given) => textOf(given).split("\r\n");
const unfolded = (given: Given) => textOf(given).replaceAll("\r\n ", "").split("\r\n");

describe("an event", () => {
  test("says in UTC when it begins and ends, in the answer and in the file", () => {
    const { output, name, mediaType } = callHandler(calendarEvent, { ...EVENT, duration_minutes: 45 });
    expect(output).toEqual({
      created: true,
      starts_at: "2026-12-03T13:00:00.000Z",
      ends_at: "2026-12-03T13:45:00.000Z",
      all_day: false,
    });
    expect({ name, mediaType }).toEqual({ name: "Release-meeting.ics", mediaType: "text/calendar" });
    const { property } = read({ duration_minutes: 45 });
    expect([property("dtstart"), property("dtend"), property("summary")]).toEqual([
      "2026-12-03T13:00:00Z",
      "2026-12-03T13:45:00Z",
      "Release meeting",
    ]);
  });

  test.each([
    [{ start: "2026-12-03T14:00+05:30", time_zone: undefined }, "2026-12-03T08:30:00Z", "2026-12-03T09:30:00Z"],
    [{ start: "2026-12-03T14:00", time_zone: undefined }, "2026-12-03T14:00:00", "2026-12-03T15:00:00"],
    [{ start: "2026-12-03", time_zone: undefined }, "2026-12-03", "2026-12-04"],
    [{ start: "2026-12-03", end: "2026-12-03" }, "2026-12-03", "2026-12-04"],
    [{ start: "2026-12-30", end: "2027-01-02" }, "2026-12-30", "2027-01-03"],
    [{ end: "2026-12-04T00:00" }, "2026-12-03T13:00:00Z", "2026-12-03T23:00:00Z"],
    [{ end: "2026-12-03T14:00Z" }, "2026-12-03T13:00:00Z", "2026-12-03T14:00:00Z"],
    [{ start: "2026-10-25T01:30", duration_minutes: 120 }, "2026-10-24T23:30:00Z", "2026-10-25T01:30:00Z"],
    [{ duration_minutes: 44_640 }, "2026-12-03T13:00:00Z", "2027-01-03T13:00:00Z"],
  ])("%j lasts from %s to %s", (given, start, end) => {
    const { property } = read(given);
    expect([property("dtstart"), property("dtend")]).toEqual([start, end]);
  });

  test.each([
    [{ end: "2026-12-03T13:00" }, "/end"],
    [{ end: "2026-12-03T14:00" }, "/end"],
    [{ end: "2026-12-03T15:00", duration_minutes: 5 }, "/end"],
    [{ end: "2026-12-04" }, "/end"],
    [{ start: "2026-12-03", end: "2026-12-02" }, "/end"],
    [{ start: "2026-12-03", end: "2026-12-03T10:00" }, "/end"],
    [{ start: "2026-12-03", duration_minutes: 60 }, "/duration_minutes"],
    [{ start: "2026-12-03T10:00", time_zone: undefined, end: "2026-12-03T11:00Z" }, "/end"],
    [{ end: "soon" }, "/end"],
    [{ start: "2026-02-30T10:00" }, "/start"],
    [{ start: "9999-12-31" }, "/start"],
    [{ start: "9999-12-31T23:30", time_zone: "UTC" }, "/start"],
    [{ time_zone: "Mars/Olympus" }, "/time_zone"],
    [{ duration_minutes: 0 }, "/duration_minutes"],
    [{ duration_minutes: 44_641 }, "/duration_minutes"],
    [{ duration_minutes: 1.5 }, "/duration_minutes"],
    [{ reminder_minutes: -1 }, "/reminder_minutes"],
    [{ reminder_minutes: 40_321 }, "/reminder_minutes"],
    [{ title: "\u200b" }, "/title"],
    [{ title: null }, "/title"],
    [{ url: "javascript:alert(1)" }, "/url"],
    [{ url: "file:///etc/passwd" }, "/url"],
    [{ url: "example.test" }, "/url"],
    [{ organizer: { name: "A" } }, "/organizer/email"],
    [{ attendees: [{ email: "a@b.test" }, { email: "nobody" }] }, "/attendees/1/email"],
    [{ attendees: [{ email: "a@b.test\r\nATTENDEE:mailto:x@y.test" }] }, "/attendees/0/email"],
    [{ attendees: [{ email: "a@b.test?bcc=x@y.test" }] }, "/attendees/0/email"],
    [{ attendees: [{ email: 'a"@b.test' }] }, "/attendees/0/email"],
    [{ attendees: Array.from({ length: 101 }, () => ({ email: "a@b.test" })) }, "/attendees"],
    [{ lcation: "x" }, "/lcation"],
  ])("%j is refused at %s", (given, path) => {
    expect(pathsOf(given)).toEqual([path]);
  });

  test("is itself again when it is asked for again, and another when anything differs", () => {
    expect(textOf({})).toBe(textOf({}));
    const uid = read({}).property("uid");
    expect(uid).toMatch(/^[0-9a-f]{32}@skillbroker$/);
    expect(read({ location: "Room 2" }).property("uid")).not.toBe(uid);
  });

  test("is stamped with the time of the job", () => {
    expect(read({}).property("dtstamp")).toBe(new Date(NOW).toISOString().replace(/\.\d+/, ""));
  });

  test.each([
    [0, "PT0S"],
    [10, "-PT10M"],
    [1_440, "-P1D"],
    [40_320, "-P4W"],
  ])("reminds %d minutes before", (minutes, trigger) => {
    const [alarm] = read({ reminder_minutes: minutes }).event.getAllSubcomponents("valarm");
    expect(alarm?.getFirstPropertyValue("action")).toBe("DISPLAY");
    const seconds = ICAL.Duration.fromString(trigger).toSeconds();
    expect(ICAL.Duration.fromString(String(alarm?.getFirstPropertyValue("trigger"))).toSeconds()).toBe(seconds);
  });

  test("has no reminder that nobody asked for, no description and no place", () => {
    const { event } = read({});
    expect(event.getAllSubcomponents("valarm")).toEqual([]);
    expect(
      ["location", "description", "url", "organizer", "attendee"].filter((name) => event.hasProperty(name)),
    ).toEqual([]);
  });
});

describe("texts", () => {
  const HARD = 'a; b, c \\ d: "e"\\n é😀';

  test("come back as they were given", () => {
    const { property } = read({ title: HARD, location: HARD, description: `${HARD}\n\n  second line\r\nthird` });
    expect(property("summary")).toBe(HARD);
    expect(property("location")).toBe(HARD);
    expect(property("description")).toBe(`${HARD}\n\n  second line\nthird`);
  });

  test("a URL comes back usable", () => {
    const url = "https://x.test/a,b;c?d=1,2;3&e=é\\#f";
    const back = new URL(read({ url }).property("url") ?? "");
    expect(decodeURIComponent(back.href)).toBe(decodeURIComponent(new URL(url).href));
    expect(read({ url: "https://x.test/a?b=c" }).property("url")).toBe("https://x.test/a?b=c");
  });

  test("people come back with their names and addresses, and nobody else", () => {
    const given = {
      organizer: { name: "Ann", email: "ann@x.test" },
      attendees: [
        { name: 'Bob "B"; CN=x:y,z', email: "bob@x.test" },
        { name: "é".repeat(100), email: "c@x.test" },
        { name: "a\r\nATTENDEE:mailto:evil@x.test", email: "d@x.test" },
        { name: "\u200b", email: "e@x.test" },
        { email: "f+g@x.test" },
      ],
    };
    const { event } = read(given);
    expect(event.getFirstPropertyValue("organizer")).toBe("mailto:ann@x.test");
    const attendees = event.getAllProperties("attendee");
    expect(attendees.map((each) => String(each.getFirstValue()).toLowerCase())).toEqual(
      ["bob", "c", "d", "e", "f+g"].map((name) => `mailto:${name}@x.test`),
    );
    expect(attendees.slice(1).map((each) => each.getFirstParameter("cn"))).toEqual([
      "é".repeat(100),
      "a ATTENDEE:mailto:evil@x.test",
      "e@x.test",
      "f+g@x.test",
    ]);
    expect(unfolded(given).filter((line) => line.startsWith("ATTENDEE"))).toHaveLength(5);
  });

  test.each(["\r\n", "\n", "\r", "\u2028", "\u0085", "\v", "\r\n "])(
    "no text begins a property after %j",
    (breaking) => {
      const forged = `x${breaking}BEGIN:VEVENT${breaking}SUMMARY:forged`;
      const given = {
        title: forged,
        location: forged,
        description: forged,
        organizer: { name: forged, email: "a@x.test" },
        attendees: [{ name: forged, email: "b@x.test" }],
        reminder_minutes: 5,
      };
      const lines = unfolded(given);
      expect(lines.filter((line) => line === "BEGIN:VEVENT")).toHaveLength(1);
      expect(lines.filter((line) => line.startsWith("SUMMARY:"))).toHaveLength(1);
    },
  );

  /** What is to be seen of a text, whatever of the rest stays in it. */
  const seen = (text: string) =>
    text.replace(/(?!\n)[\p{Cc}\p{Cf}\u115f\u1160\u17b4\u17b5\u3164\uffa0]/gu, "").replace(/[^\S\n]+$/gm, "");

  test("any text comes back, on lines of at most 75 bytes that all end in CRLF", () => {
    const text = fc.string({
      unit: fc.oneof(
        fc.constantFrom(..."\\;,:\"\n^'nN é😀"),
        fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }),
      ),
      maxLength: 150,
    });
    // In the answer it is the mark of a character that was cut in two.
    const whole = text.filter((given) => !given.includes("\ufffd"));
    fc.assert(
      fc.property(whole, (given) => {
        const description = `<${given}>`;
        const lines = linesOf({ description });
        expect(lines.at(-1)).toBe("");
        for (const line of lines) {
          expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75);
          expect(line).not.toMatch(/[\r\n]|\ufffd/);
        }
        const wanted = description.replace(/\r\n|[\r\v\f\u0085\u2028\u2029]/g, "\n");
        expect(seen(read({ description }).property("description") ?? "")).toBe(seen(wanted));
      }),
      { numRuns: 300 },
    );
  });
});

test("the machine's own time zone makes no difference", () => {
  const script =
    'import { calendarEvent } from "./functions/handlers/calendar-event.ts";' +
    "for (const start of ['2026-12-03', '2026-03-29T02:30', '2026-11-01T01:30', '2026-07-01T10:00Z'])" +
    "for (const time_zone of [undefined, 'Europe/Paris'])" +
    "console.log(calendarEvent({ arguments: { title: 't', start, time_zone, reminder_minutes: 5 }, skill: undefined, now: 0 }).artifact.base64);";
  const cwd = new URL("../../../", import.meta.url).pathname;
  const run = (zone: string) =>
    spawnSync(process.execPath, ["--input-type=module", "-e", script], { cwd, env: { TZ: zone }, encoding: "utf8" });
  const results = ["UTC", "America/New_York", "Pacific/Kiritimati"].map(run);
  expect(results.map(({ status }) => status)).toEqual([0, 0, 0]);
  expect(new Set(results.map(({ stdout }) => stdout)).size).toBe(1);
  expect(results[0]?.stdout.split("\n")).toHaveLength(9);
});
