import manifest from '../../../package.json' with { type: 'json' };
import { keepCompiled } from './compileCache.ts';

keepCompiled(process.env);
const args = process.argv.slice(2);
// Everything else is loaded after the cache is there, and only for what needs it.
if (args.length === 1 && args[0] === '--version') process.stdout.write(`kronos ${manifest.version}\n`);
else {
  const [{ runMain }, { endWhenWritten }] = await Promise.all([import('./runMain.ts'), import('./ending.ts')]);
  process.exitCode = await runMain(args);
  endWhenWritten();
}
