// Amounts of tokens and of money as people write them: 200k, 1.5M, $2. internal/amount reads the same for the commands, and
// internal/amount/testdata/amounts.json has the cases for both.

/** Figure is a kind of amount: `parse` is NaN for a text that is none, `expected` what it should be. */
export interface Figure { parse: (text: string) => number; expected: string }

const tokensMost = 1e15, usdMost = 1e6, wholeWithin = 1e-6;
const factors: Record<string, number> = { k: 1e3, K: 1e3, m: 1e6, M: 1e6 };

function parseTokens(text: string): number {
  const isSeparated = !/(^|\D)_|_(\D|$)/.test(text); // each "_" stands between two digits
  const [, number, suffix] = (isSeparated && /^(-?(?:\d+\.?\d*|\.\d+))([kKmM]?)$/.exec(text.replaceAll("_", ""))) || [];
  if (!number) return NaN;
  const v = Number(number) * (factors[suffix!] ?? 1);
  return Math.abs(v) <= tokensMost && Math.abs(v - Math.round(v)) <= wholeWithin ? Math.round(v) : NaN;
}

function parseUSD(text: string): number {
  const [, number] = /^\$?([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)$/i.exec(text) ?? [];
  const v = Number(number ?? NaN);
  return Math.abs(v) <= usdMost ? v : NaN;
}

export const ofTokens: Figure = { parse: parseTokens, expected: "a whole number, such as 20000, 20k or 1.5M" };
export const ofMoney: Figure = { parse: parseUSD, expected: "an amount, such as 0.5 or $2" };
