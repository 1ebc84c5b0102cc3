/** Records what the histories fold to: node scripts/run.mjs node test/replay/writeFold.ts */
import { writeFileSync } from 'node:fs';
import { FOLD_FILE, foldBroken, foldNow, recordedFold } from './foldRecord.ts';

const now = await foldNow();
const problem = foldBroken(recordedFold(), now);
if (problem !== null) throw new Error(problem);
writeFileSync(FOLD_FILE, `${JSON.stringify(now, null, 2)}\n`);
