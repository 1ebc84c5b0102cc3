/** Writes every generated file of the repository; tests keep them equal to the code. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { presetFiles } from '../libs/cli/src/init/presets.ts';
import { configurationFiles } from '../libs/config/src/sample.ts';
import { generatedModules, schemaFiles } from '../libs/contracts/src/generate.ts';
import { natsFiles } from '../libs/eventlog/src/admin/deploy.ts';
import { factsFiles } from '../libs/facts/src/document.ts';
import { placementFiles } from '../libs/placement/src/document.ts';
import { telemetryFiles } from '../libs/telemetry/src/doc.ts';
import { codeFiles } from './codes.ts';

const directory = new URL('../libs/contracts/schemas/', import.meta.url);
rmSync(directory, { recursive: true, force: true });
mkdirSync(directory, { recursive: true });
for (const [name, text] of schemaFiles()) writeFileSync(new URL(name, directory), text);

for (const [path, text] of [
  ...generatedModules(),
  ...configurationFiles(),
  ...telemetryFiles(),
  ...natsFiles(),
  ...factsFiles(),
  ...placementFiles(),
  ...presetFiles(),
  ...codeFiles(),
]) {
  const file = new URL(`../${path}`, import.meta.url);
  mkdirSync(new URL('.', file), { recursive: true });
  writeFileSync(file, text);
}
