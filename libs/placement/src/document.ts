import { clusterFileSchema } from './file/clusterSchema.ts';
import { reasonCodes, reasonMeanings } from './reasons.ts';

/** The files of this package that are generated from its code, by their path in the repository. */
export function placementFiles(): [path: string, text: string][] {
  return [
    ['libs/placement/docs/reasons.md', reasonsDocument()],
    ['libs/placement/docs/cluster-file.schema.json', clusterFileDocument()],
  ];
}

/** The JSON Schema of cluster files. */
function clusterFileDocument(): string {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Cluster file',
    ...clusterFileSchema,
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

function reasonsDocument(): string {
  const rows = reasonCodes.map((code) => `- \`${code}\`: ${reasonMeanings[code]}`);
  return `# Reasons

Every reason code of the planner, in the order of libs/placement/src/reasons.ts, from which this file is generated
(\`npm run generate\`).

${rows.join('\n')}
`;
}
