import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ScenarioError } from './errors.ts';
import type { ScenarioInput } from './scenario.ts';
import { demoCloud } from './scenarios/demo.ts';
import { generate } from './scenarios/generate.ts';
import { startSim } from './sim.ts';

const USAGE = `node libs/simcloud/src/main.ts [--scenario demo|HOSTSxVMS|FILE.json] [--port N] [--host NAME] [--speed N] [--seed N]

Starts a simulated OpenStack cloud with its Prometheus and prints one line of JSON: its URLs.
  --scenario  demo (default), a generated one such as 100x2000, or a file (libs/simcloud/README.md tells its form)
  --port      default 0: a free one
  --host      the name by which others reach it, when they are not on this machine: it then listens on every interface
  --speed     how many times faster than Nova its steps go; default 1
  --seed      default: the scenario's
It ends on SIGTERM or SIGINT.
`;

function scenario(name: string, seed: number | undefined): ScenarioInput {
  if (name === 'demo') return demoCloud(seed);
  const sizes = /^(\d+)x(\d+)$/.exec(name);
  if (sizes !== null) {
    const [hosts, vms] = [Number(sizes[1]), Number(sizes[2])];
    return generate({ hosts, vms, ...(seed === undefined ? {} : { seed }) });
  }
  let text: string;
  try {
    text = readFileSync(name, 'utf8');
  } catch (error) {
    throw new ScenarioError(`--scenario: ${name} is no known scenario and cannot be read as a file: ${String(error)}`);
  }
  try {
    return JSON.parse(text) as ScenarioInput;
  } catch (error) {
    throw new ScenarioError(`${name}: not JSON: ${String(error)}`);
  }
}

function number(name: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const value = Number(given);
  if (!Number.isFinite(value)) throw new ScenarioError(`--${name}: ${given} is not a number`);
  return value;
}

try {
  const { values } = parseArgs({
    options: {
      scenario: { type: 'string', default: 'demo' },
      port: { type: 'string' },
      host: { type: 'string' },
      speed: { type: 'string' },
      seed: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    process.exit(0);
  }
  const seed = number('seed', values.seed);
  const speed = number('speed', values.speed);
  const port = number('port', values.port);
  const sim = await startSim({
    scenario: scenario(values.scenario, seed),
    ...(seed === undefined ? {} : { seed }),
    ...(speed === undefined ? {} : { speed }),
    ...(port === undefined ? {} : { port }),
    ...(values.host === undefined ? {} : { host: values.host }),
  });
  process.stdout.write(
    `${JSON.stringify({ urls: sim.urls, username: 'admin', password: 'secret', project: 'admin' })}\n`,
  );
  const stop = (): void => {
    void sim.close().then(() => process.exit(0));
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`simcloud: ${message}\n${USAGE}`);
  process.exitCode = 2;
}
