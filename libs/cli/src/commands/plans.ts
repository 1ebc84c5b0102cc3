import { NotOnTheLog, plansOf } from '@kronos/replay';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { withSession } from '../open.ts';
import { answer } from '../output.ts';
import { renderPlan, renderPlans } from '../plans/record.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { partOfRange } from '../times.ts';

export type PlansOptions = ConfigOption & OutputOption & AggregateOption & { readonly since: string };

/** kronos plans. */
export async function plans(shell: Shell, options: PlansOptions): Promise<void> {
  const range = partOfRange(options, shell.now());
  await withSession(shell, options, async ({ history, scope }) => {
    const found = await plansOf(history.events(), {
      aggregates: filterAggregates(scope, options.aggregate),
      ...range,
    });
    await answer(shell, options, found, (terminal) => renderPlans({ ...shell, terminal }, found));
  });
}

/** kronos plan show. */
export async function planShow(
  shell: Shell,
  id: string | undefined,
  options: Omit<PlansOptions, 'since'>,
): Promise<void> {
  await withSession(shell, options, async ({ history, scope }) => {
    const found = await plansOf(
      history.events(),
      { aggregates: filterAggregates(scope, options.aggregate) },
      (planId) => id === undefined || planId === id,
    );
    const record = found.at(-1);
    if (record === undefined)
      throw new NotOnTheLog(
        id === undefined ? 'the log has no plan yet' : `the log has no plan ${JSON.stringify(id)}`,
        'kronos plans --since all lists every plan; kronos explain cycle shows why there is no plan.',
        { named: id !== undefined },
      );
    await answer(shell, options, record, (terminal) => renderPlan({ ...shell, terminal }, record));
  });
}
