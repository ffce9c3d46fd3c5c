import ical, { ICalAlarmType } from "ical-generator";
import * as z from "zod";
import { digestOfJson } from "../contract/json.ts";
import type { Handler } from "../contract/ports.ts";
import { isBlank, toMultiLine, toSingleLine } from "../contract/text.ts";
import { readArguments, refuseArgument } from "./arguments.ts";
import { toEnvelope } from "./envelope.ts";
import { isTimeZone, type PointInTime, parsePoint } from "./zoned-time.ts";

/**
 * One event -> an iCalendar file (RFC 5545). Times are written in UTC, so that no VTIMEZONE is needed; the UID follows
 * from the arguments, so that importing the same file twice changes one event instead of making two.
 */

const DAY = 24 * 3600_000;
/** iCalendar writes a year with four digits. */
const END_OF_TIME = Date.UTC(10_000, 0, 1);
const MAX_ATTENDEES = 100;

const Person = z.strictObject({ name: z.string().max(200).optional(), email: z.email().max(320) });

const CalendarEventArguments = z.strictObject({
  title: z.string().max(500),
  start: z.string().max(40),
  end: z.string().max(40).optional(),
  duration_minutes: z
    .int()
    .min(1)
    .max(60 * 24 * 31)
    .optional(),
  time_zone: z.string().max(64).optional(),
  location: z.string().max(500).optional(),
  description: z.string().max(8_000).optional(),
  organizer: Person.optional(),
  attendees: z.array(Person).max(MAX_ATTENDEES).optional(),
  url: z
    .url({ protocol: /^https?$/ })
    .max(2_000)
    .optional(),
  reminder_minutes: z
    .int()
    .min(0)
    .max(60 * 24 * 28)
    .optional(),
  filename: z.string().optional(),
});
type EventArguments = z.infer<typeof CalendarEventArguments>;

/** Answers `{created, starts_at, ends_at, all_day, artifact}`. Throws `ToolInputError` for times that do not fit. */
export const calendarEvent: Handler = ({ arguments: given, now }) => {
  const event = readArguments(CalendarEventArguments, given);
  const title = toSingleLine(event.title);
  if (isBlank(title)) refuseArgument("/title", "must hold some visible text");
  const { start, end } = readSpan(event);
  const calendar = ical({ prodId: { company: "skillbroker", product: "calendar_event", language: "EN" } });
  const made = calendar.createEvent({
    id: `${digestOfJson(given).slice(0, 32)}@skillbroker`,
    stamp: new Date(now),
    start: new Date(start.time),
    end: new Date(end.time),
    allDay: start.kind === "date",
    floating: start.kind === "floating",
    summary: title,
    location: event.location === undefined ? null : toSingleLine(event.location),
    description: event.description === undefined ? null : toMultiLine(event.description),
    url: event.url === undefined ? null : toUri(event.url),
    organizer: event.organizer === undefined ? null : toPerson(event.organizer),
    attendees: (event.attendees ?? []).map(toPerson),
  });
  if (event.reminder_minutes !== undefined) {
    made.createAlarm({ type: ICalAlarmType.display, trigger: event.reminder_minutes * 60 });
  }
  return {
    created: true,
    starts_at: shownPoint(start),
    ends_at: shownPoint(end),
    all_day: start.kind === "date",
    artifact: toEnvelope({
      // RFC 5545 ends every line with CRLF, the last one too; the library leaves that one out.
      content: `${calendar.toString()}\r\n`,
      mediaType: "text/calendar",
      filename: event.filename,
      title,
      fallback: "event",
    }),
  };
};

function readSpan(event: EventArguments): { start: PointInTime; end: PointInTime } {
  const { start: startText, end: endText, duration_minutes: minutes, time_zone: zone } = event;
  if (zone !== undefined && !isTimeZone(zone))
    refuseArgument("/time_zone", "must be an IANA name such as Europe/Paris");
  const start = readPoint(startText, zone, "/start");
  if (endText !== undefined && minutes !== undefined) refuseArgument("/end", "and duration_minutes exclude each other");
  const end = endText === undefined ? defaultEnd(start, minutes) : readEnd(endText, zone, start);
  if (end.time >= END_OF_TIME)
    refuseArgument(endText === undefined ? "/start" : "/end", "must be over before the year 10000");
  return { start, end };
}

function readPoint(text: string, zone: string | undefined, path: string): PointInTime {
  const wanted = "must be a date (2026-12-01) or a date with time (2026-12-01T09:30, with offset or time_zone)";
  return parsePoint(text, zone) ?? refuseArgument(path, wanted);
}

function readEnd(text: string, zone: string | undefined, start: PointInTime): PointInTime {
  const end = readPoint(text, zone, "/end");
  if (end.kind !== start.kind) refuseArgument("/end", `must be written like start (${start.kind}), got ${end.kind}`);
  if (start.kind === "date") {
    if (end.time < start.time) refuseArgument("/end", "must not be before start");
    // DTEND of a day is the day after (RFC 5545, 3.6.1); people name the last day.
    return { kind: "date", time: end.time + DAY };
  }
  if (end.time <= start.time) refuseArgument("/end", "must be after start");
  return end;
}

function defaultEnd(start: PointInTime, minutes: number | undefined): PointInTime {
  if (start.kind === "date") {
    if (minutes !== undefined) refuseArgument("/duration_minutes", "needs a start with a time");
    return { kind: "date", time: start.time + DAY };
  }
  return { kind: start.kind, time: start.time + (minutes ?? 60) * 60_000 };
}

/** The library escapes a URI like text (RFC 5545, 3.3.13 wants it bare), so what it would escape is encoded first. */
function toUri(url: string): string {
  return new URL(url).href.replace(/[,;\\]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
}

function toPerson({ name, email }: z.infer<typeof Person>): { name: string; email: string } {
  return { name: toSingleLine(name ?? "") || email, email };
}

function shownPoint({ kind, time }: PointInTime): string {
  const text = new Date(time).toISOString();
  if (kind === "date") return text.slice(0, 10);
  return kind === "floating" ? text.slice(0, 19) : text;
}
