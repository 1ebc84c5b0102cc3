/** Writes the plans of this planner version: npm run golden:plans. Those of a released version are never written again. */
import { writeFileSync } from 'node:fs';
import { plannerVersion } from '@kronos/placement';
import { planSet, recordedSet, released, setFile } from './plans.ts';

const release = Object.entries(released()).find(([, version]) => version === plannerVersion)?.[0];
if (release !== undefined && recordedSet(plannerVersion) !== null)
  throw new Error(
    `Kronos ${release} was released with planner version ${plannerVersion}: raise plannerVersion in libs/placement/src/version.ts`,
  );
writeFileSync(setFile(plannerVersion), `${JSON.stringify(planSet(), null, 2)}\n`);
