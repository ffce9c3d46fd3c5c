/**
 * RFC 4180, strictly: records end with CRLF, a field is bare or quoted, a quote within quotes is doubled. Throws for
 * anything else, so that a file is shown to be well formed by reading it.
 */
export function readCsv(text: string, delimiter: string): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  let at = 0;
  while (at < text.length) {
    const [field, end] = text[at] === '"' ? readQuoted(text, at) : readBare(text, at, delimiter);
    record.push(field);
    if (text[end] === delimiter) {
      at = end + 1;
      if (at === text.length) throw new Error("the file ends after a delimiter");
    } else if (text.startsWith("\r\n", end)) {
      records.push(record);
      record = [];
      at = end + 2;
    } else throw new Error(`delimiter or CRLF expected at ${end}`);
  }
  if (record.length > 0) throw new Error("the last record has no CRLF");
  return records;
}

function readBare(text: string, start: number, delimiter: string): [string, number] {
  let end = start;
  while (end < text.length && text[end] !== delimiter && text[end] !== "\r") {
    if (text[end] === '"' || text[end] === "\n") throw new Error(`unquoted quote or line feed at ${end}`);
    end += 1;
  }
  return [text.slice(start, end), end];
}

function readQuoted(text: string, start: number): [string, number] {
  let field = "";
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] !== '"') field += text[at];
    else if (text[at + 1] === '"') {
      field += '"';
      at += 1;
    } else return [field, at + 1];
  }
  throw new Error(`the quote at ${start} is never closed`);
}
