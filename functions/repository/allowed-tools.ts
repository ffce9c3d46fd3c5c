/** The one list of a SKILL.md that has a grammar of its own. */

export type ToolList = { readonly tools: readonly string[]; readonly commas: boolean; readonly balanced: boolean };

/**
 * Splits at white space, and at the commas others write, but not inside parentheses: in `Bash(git add:*, x) Read` they
 * belong to a command pattern, and splitting there would allow a tool named `x)`.
 */
export function splitTools(text: string): ToolList {
  const tools: string[] = [];
  let tool = "";
  let depth = 0;
  let commas = false;
  let balanced = true;
  for (const character of `${text} `) {
    if (character === "(") depth += 1;
    if (character === ")") depth -= 1;
    if (depth < 0) balanced = false;
    const separates = depth === 0 && /[\s,]/.test(character);
    commas ||= depth === 0 && character === ",";
    if (separates && tool !== "") tools.push(tool);
    tool = separates ? "" : tool + character;
  }
  return { tools, commas, balanced: balanced && depth === 0 };
}
