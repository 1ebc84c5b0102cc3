/** The search of the site. It runs while the site is made and in the browser, which gets this file without its types as a script. */

const namesIn = (text: string): string[] =>
  text.match(/[\p{L}\p{N}][\p{L}\p{N}_.:-]*[\p{L}\p{N}]|[\p{L}\p{N}]/gu) ?? [];

/** An option is found by its whole name and by each word of it: `failover_hosts`, `failover`, `hosts`. */
const wordsOf = (text: string): string[] =>
  namesIn(text).flatMap((name) => {
    const parts = name.split(/[_.:-]+/);
    return parts.length === 1 ? parts : [name, ...parts];
  });

/** Options of MiniSearch, the same for the index and for the query. */
export const searchOptions = {
  fields: ['heading', 'page', 'text'],
  storeFields: ['heading', 'page'],
  tokenize: wordsOf,
  searchOptions: {
    tokenize: namesIn,
    boost: { heading: 4, page: 2 },
    // The reader may not have finished the last word.
    prefix: (_word: string, i: number, words: string[]) => i === words.length - 1,
    combineWith: 'AND' as const,
    fuzzy: (word: string) => (word.length > 5 ? 0.15 : false),
    weights: { prefix: 0.2, fuzzy: 0.1 },
    // The sections of references are long, and hold what is asked for most.
    bm25: { k: 1.2, b: 0.2, d: 0.5 },
    boostDocument: (id: string) => (/^(CHANGELOG|CONTRIBUTING|libs|services|test|docs\/adr)/.test(id) ? 0.3 : 1),
  },
};
