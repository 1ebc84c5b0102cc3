import { DAY_MS } from '@kronos/contracts/time';
import { newestSnapshots } from '@kronos/replay';
import { isKronosError } from '@kronos/telemetry/errors';
import type { ConfigOption, NameKind } from '../grammar/shared.ts';
import { type OpenLog, withSession } from '../open.ts';
import type { Shell } from '../shell.ts';

/** A shell would take others apart. */
const WHOLE = /^[\w.@:+/-]+$/;

/** kronos __complete: names, one a line; nothing where there are none or the system cannot be asked, as a shell waits for it. */
export async function complete(shell: Shell, kind: NameKind, options: ConfigOption): Promise<void> {
  try {
    const names = await withSession(shell, options, (session) => namesOf(shell, session, kind));
    const whole = [...new Set(names)].filter((name) => WHOLE.test(name)).sort();
    shell.terminal.out(whole.map((name) => `${name}\n`).join(''));
  } catch (error) {
    if (!isKronosError(error)) throw error;
  }
}

async function namesOf(shell: Shell, { log, history, scope }: OpenLog, kind: NameKind): Promise<readonly string[]> {
  if (kind === 'aggregates') return scope;
  if (kind === 'plans') {
    const range = { aggregates: scope, sinceMs: shell.now() - DAY_MS };
    const names: string[] = [];
    for await (const { event } of history.decisions(range))
      if (event.data.plan !== null) names.push(event.data.plan.id);
    for await (const { event } of history.proposals(range))
      if (event.data.steps.length > 0) names.push(event.data.planId);
    return names;
  }
  const snapshots = await newestSnapshots(log, scope);
  return kind === 'hosts'
    ? snapshots.flatMap(({ hosts }) => hosts.map(({ name }) => name))
    : snapshots.flatMap(({ servers }) => servers.map(({ name }) => name));
}
