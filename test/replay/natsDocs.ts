import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CliWorld, openCliWorld } from '../../libs/cli/test/world.ts';

const document = readFileSync(join(import.meta.dirname, '../../docs/nats.md'), 'utf8');

/** The commands of nats in docs/nats.md. */
export const commands = [...document.matchAll(/^```sh\n(.*?)^```$/gms)]
  .flatMap(([, block = '']) => block.trimEnd().split('\n'))
  .filter((line) => line.startsWith('nats '));

/** Splits a command line into words, as a shell does. */
export const words = (line: string): string[] =>
  [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');

/** The text that the answer must contain. */
export const answers: Readonly<Record<string, RegExp>> = {
  'nats stream ls': /KRONOS_LOG/,
  'nats stream info KRONOS_LOG': /kronos\.plans\.\*/,
  'nats stream subjects KRONOS_LOG': /kronos\.plans\.gpu/,
  'nats stream get KRONOS_LOG --last-for kronos.plans.gpu': /"reason":\{"code":"[\w-]+","text":"/,
  'nats stream get KRONOS_SNAPSHOTS --last-for kronos.snapshots.gpu': /"digest":"sha256:/,
  'nats object ls kronos-snapshots': /sha256:/,
  'nats stream get KRONOS_LOG --last-for kronos.results.gpu': /"type":"migration\.\w+"/,
  'nats stream get KRONOS_LOG --last-for kronos.controls.gpu': /"service":"operator"/,
  'nats stream get KRONOS_LOG 1': /"type":"planner\.configured"/,
  'nats stream get KRONOS_LOG 2': /"basis":1/,
  'nats stream view KRONOS_LOG 5': /"type":"planner\.configured"/,
  'nats stream view KRONOS_LOG 5 --subject kronos.results.gpu': /"type":"migration\.started"/,
  'nats sub "kronos.>"': /"type":"evaluation\.requested"/,
  'nats sub kronos.plans.gpu': /"type":"cycle\.decided"/,
  'nats consumer ls KRONOS_MIGRATIONS': /tasks-gpu/,
  'nats consumer info KRONOS_MIGRATIONS tasks-gpu': /Outstanding Acks/,
  'nats stream view KRONOS_MIGRATIONS 5': /"type":"migration\.requested"/,
  'nats stream info KRONOS_CHECKPOINTS': /kronos\.ledger\.\*/,
  'nats stream backup KRONOS_LOG backup --no-progress': /(?:)/,
};

export type NatsDocsWorld = CliWorld & { readonly scratch: string };

/** Publishes a log, snapshots and a waiting task for the commands to show. */
export async function openNatsDocsWorld(): Promise<NatsDocsWorld> {
  const scratch = mkdtempSync(join(tmpdir(), 'kronos-nats-docs-'));
  const world = await openCliWorld({
    seed: 4,
    cycles: 34,
    hosts: 4,
    vmsPerHost: 4,
    failures: 0.3,
    commands: 0.15,
    planner: 'greedy',
  });
  const plan = world.operation.events.find(({ event }) => event.type === 'cycle.decided' && event.data.plan !== null);
  const step = plan?.event.type === 'cycle.decided' ? plan.event.data.plan?.steps[0] : undefined;
  if (step === undefined) throw new Error('no plan');
  const { why: _, delaySeconds: __, ...task } = step;
  const time = '2026-01-05T00:00:00.000Z';
  await world.log.append({
    type: 'migration.requested',
    version: 1,
    id: 'migration.requested:test:1',
    time,
    aggregate: 'gpu',
    by: { service: 'planner', instance: 'p', version: '0.1.0' },
    correlationId: 'test',
    causationId: null,
    data: { ...task, planId: 'test', attempt: 1, destination: step.to, notBefore: time, notAfter: time },
  });
  return {
    ...world,
    scratch,
    async close() {
      await world.close();
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

/** Publishes the messages of the subscriptions in docs/nats.md again and again, until it is stopped. */
export function sayAgain(world: NatsDocsWorld, line: string): () => void {
  const last = world.operation.events.findLast(
    ({ event }) => event.type === 'cycle.decided' && event.aggregate === 'gpu',
  )?.event;
  let n = 0;
  const again = setInterval(() => {
    n += 1;
    if (line.includes('plans') && last?.type === 'cycle.decided')
      void world.log.append({ ...last, id: `${last.id}:${n}` });
    else void world.kronos('evaluate -a gpu --wait 0');
  }, 300);
  return () => clearInterval(again);
}
