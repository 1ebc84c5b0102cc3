import { sinkOrigin } from '@kronos/config';
import { loadConf } from '@kronos/config/conf';
import { didYouMean } from '@kronos/config/nearest';
import { judgeAttempt, openSender, remedyFor, testNotice } from '@kronos/notify';
import { scrub } from '@kronos/telemetry/scrub';
import { kronosVersion } from '@kronos/telemetry/version';
import { UsageError } from '../errors.ts';
import type { ConfigOption, OutputOption } from '../grammar/shared.ts';
import { configFile } from '../open.ts';
import { answer } from '../output.ts';
import type { Shell } from '../shell.ts';

export type NotifyTestOptions = ConfigOption & OutputOption;

/** Characters of the receiver's answer that are shown. */
const SHOWN = 1000;

/** kronos notify test. */
export async function notifyTest(shell: Shell, name: string, options: NotifyTestOptions): Promise<void> {
  const { sinks } = loadConf({ file: configFile(shell, options), env: shell.env, role: 'ledger' });
  const sink = sinks.get(name);
  if (sink === undefined) throw unknownSink(name, [...sinks.keys()]);
  const sender = openSender(name, sink, `kronos/${kronosVersion}`);
  try {
    const attempt = await sender.send(testNotice(shell.person, kronosVersion, shell.now()));
    const delivered = judgeAttempt(attempt, 1).kind === 'delivered';
    const remedy = delivered ? null : remedyFor(attempt, { name, format: sink.format });
    const result = {
      sink: name,
      format: sink.format,
      to: sinkOrigin(sink),
      delivered,
      status: attempt.kind === 'answered' ? attempt.status : null,
      // A receiver may repeat what it was sent.
      answer: scrub(attempt.kind === 'answered' ? (attempt.body ?? '').slice(0, SHOWN) : attempt.reason),
      ...(remedy === null ? {} : { remedy }),
    };
    await answer(shell, options, result, () => {
      const said = result.answer.trim();
      const what = result.status === null ? 'no answer' : `the answer is ${result.status}`;
      return `${delivered ? 'delivered' : 'not delivered'}: [notify:${name}] (${sink.format}) at ${result.to}: ${what}${said === '' ? '' : `: ${said}`}\n${remedy === null ? '' : `${remedy}\n`}`;
    });
    process.exitCode = delivered ? 0 : 1;
  } finally {
    await sender.close();
  }
}

function unknownSink(name: string, known: readonly string[]): UsageError {
  if (known.length === 0)
    return new UsageError(
      `there is no sink ${JSON.stringify(name)}: the configuration has no section [notify:NAME]`,
      'Add one; docs/configuration.md has its options.',
    );
  return new UsageError(
    `there is no sink ${JSON.stringify(name)}`,
    `${didYouMean(name, known)}There are: ${known.join(', ')}.`,
  );
}
