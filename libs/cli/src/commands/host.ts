import { ALL } from '@kronos/contracts';
import { control, type Told } from '@kronos/operator';
import type { OperatorOptions } from '../grammar/shared.ts';
import { withSession } from '../open.ts';
import type { Shell } from '../shell.ts';
import { give, tell } from './operator.ts';

/** kronos host release. */
export async function hostRelease(shell: Shell, hosts: readonly string[], options: OperatorOptions): Promise<void> {
  await withSession(shell, options, async (session) => {
    const told: Told[] = [];
    // A release reaches the breaker wherever it is open: nobody has to know the aggregate.
    for (const host of hosts)
      told.push(await give(shell, session, options, (_, asking) => control('host.released', ALL, { host }, asking)));
    await tell(shell, options, told);
  });
}
