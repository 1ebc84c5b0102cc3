import { reasonCodes, reasonMeanings } from './reasons.ts';

/** The files of this package that are generated from its code, by their path in the repository. */
export function generatedFiles(): [path: string, text: string][] {
  return [['libs/placement/docs/reasons.md', reasonsDocument()]];
}

function reasonsDocument(): string {
  const rows = reasonCodes.map((code) => `- \`${code}\`: ${reasonMeanings[code]}`);
  return `# Reasons

Every reason code of the planner, in the order of libs/placement/src/reasons.ts, from which this file is generated
(\`npm run generate\`).

${rows.join('\n')}
`;
}
