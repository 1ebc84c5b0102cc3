import { ALL } from '@kronos/contracts';
import { control, hasFailures } from '@kronos/operator';
import { newestSnapshots } from '@kronos/replay';
import type { OperatorOptions } from '../grammar/shared.ts';
import { currentState, type OpenLog, withSession } from '../open.ts';
import { unknownHost } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { giveEach, tell } from './give.ts';

/** kronos host release. */
export async function hostRelease(shell: Shell, hosts: readonly string[], options: OperatorOptions): Promise<void> {
  await withSession(shell, options, async (session) => {
    await requireKnown(shell, session, hosts);
    // A release reaches the breaker wherever it is open: nobody has to know the aggregate.
    const told = await giveEach({ shell, session, options }, hosts, (host, _, asking) =>
      control('host.released', ALL, { host }, asking),
    );
    await tell(shell, options, told);
  });
}

/** A host that has left the cloud may have failures still. @throws UsageError */
async function requireKnown(shell: Shell, { log, scope }: OpenLog, hosts: readonly string[]): Promise<void> {
  const known = (await newestSnapshots(log, scope)).flatMap((snapshot) => snapshot.hosts.map(({ name }) => name));
  if (known.length === 0) return;
  const state = await currentState(shell, log);
  for (const host of hosts) if (!known.includes(host) && !hasFailures(state, host)) throw unknownHost(host, known);
}
