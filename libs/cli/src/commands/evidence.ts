import { writeFileSync } from 'node:fs';
import { count } from '@kronos/contracts/words';
import { makeEvidence, publicKeyIn, readEvidence, withRecordingOf } from '@kronos/evidence';
import { type History, type Range, readRecording, VerifyCount, verify } from '@kronos/replay';
import { kronosVersion } from '@kronos/telemetry/version';
import { UsageError } from '../errors.ts';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { withSession } from '../open.ts';
import { answer } from '../output.ts';
import { openRecording } from '../recordings.ts';
import type { Shell } from '../shell.ts';
import { partOfRange } from '../times.ts';
import { readText } from './inputs.ts';

export type EvidenceOptions = ConfigOption &
  AggregateOption & {
    readonly plan?: string;
    readonly since?: string;
    readonly until?: string;
    readonly in?: string;
    readonly anonymize?: boolean;
    readonly key?: string;
    readonly to: string;
  };

/** kronos evidence: one file that decides again in a browser. */
export async function evidence(shell: Shell, options: EvidenceOptions & OutputOption): Promise<void> {
  if ((options.plan === undefined) === (options.since === undefined))
    throw new UsageError('give --plan ID, or --since TIME', 'For example: kronos evidence --since 2h --to case.html');
  if (options.in !== undefined) {
    const { history } = await openRecording(shell, options.in);
    await write(shell, options, { history, keyFile: options.key ?? null });
    return;
  }
  await withSession(shell, options, async ({ history, config }) => {
    await write(shell, options, { history, keyFile: options.key ?? config.ledger.evidenceKey });
  });
}

async function write(
  shell: Shell,
  options: EvidenceOptions & OutputOption,
  { history, keyFile }: { readonly history: History; readonly keyFile: string | null },
): Promise<void> {
  const made = await makeEvidence({
    history,
    ...(await partOf(shell, options, history)),
    anonymize: options.anonymize === true,
    keyFile,
    madeBy: `kronos ${kronosVersion}`,
    nowMs: shell.now(),
  });
  writeFileSync(options.to, made.html);
  const { decisions, snapshots, html } = made;
  const facts = { file: options.to, decisions, snapshots, bytes: html.length, signed: keyFile !== null };
  await answer(
    shell,
    options,
    facts,
    () =>
      `wrote ${count(decisions, 'decision')} on ${count(snapshots, 'snapshot')} into ${options.to} (${Math.ceil(html.length / 1000)} KB${keyFile === null ? ', not signed: set [ledger] evidence_key or --key' : ', signed'})\nOpen it in a browser, or check it: kronos evidence verify ${options.to}\n`,
  );
}

async function partOf(
  shell: Shell,
  options: EvidenceOptions,
  history: History,
): Promise<{ readonly range: Range; readonly only?: readonly string[] }> {
  const aggregates = options.aggregate === undefined ? {} : { aggregates: options.aggregate };
  if (options.plan !== undefined) {
    for await (const { event, snapshotMs } of history.decisions({}))
      if (event.data.plan?.id === options.plan)
        // Its event came later than its snapshot, so the range has no end.
        return { range: { aggregates: [event.aggregate], sinceMs: snapshotMs }, only: [event.data.snapshotId] };
    throw new UsageError(`the log has no plan ${options.plan}`, 'kronos plans lists them.');
  }
  return { range: { ...aggregates, ...partOfRange(options, shell.now()) } };
}

export type EvidenceVerifyOptions = OutputOption & { readonly key?: string };

/** kronos evidence verify: every part, the chain, the signature, and each decision again. */
export async function evidenceVerify(shell: Shell, file: string, options: EvidenceVerifyOptions): Promise<void> {
  const read = readEvidence(file, readText('evidence verify', file));
  const { evidence: found, problems: broken } = read;
  const problems: string[] = [];
  const verdicts = new VerifyCount();
  if (found === null) problems.push(...broken);
  else {
    if (options.key !== undefined && found.signature?.publicKey !== publicKeyIn(options.key))
      problems.push(found.signature === null ? 'signature: there is none' : 'signature: is of another key');
    await withRecordingOf(file, read, async (directory, first) => {
      problems.push(...first);
      const recording = await readRecording(directory);
      problems.push(...recording.problems);
      for await (const cycle of verify(recording.history, await recording.history.kept(), { threads: 1 })) {
        // The log has decisions whose snapshots were not kept when the file was made: it claims nothing of them.
        if (!(cycle.snapshotId in found.manifest.decisions)) continue;
        verdicts.add(cycle);
        if (cycle.verdict === 'different' || cycle.verdict === 'notReplayed')
          problems.push(`decision ${cycle.snapshotId}: ${cycle.verdict === 'different' ? 'differs' : cycle.reason}`);
      }
    });
  }
  const totals = verdicts.totals();
  const signed = found?.signature?.publicKey ?? null;
  if (problems.length > 0) process.exitCode = 1;
  await answer(shell, options, { file, problems, totals, publicKey: signed }, () =>
    problems.length > 0
      ? `${file} was changed, or does not decide as it says:\n${problems.map((one) => `  ${one}\n`).join('')}`
      : `${file} is as it was made; ${totals.identical} of ${count(totals.decisions, 'decision')} made again are identical${others(totals)}\n${signed === null ? 'It is not signed.\n' : `It is signed by ${signed}${options.key === undefined ? ': compare it with the key of its sender (--key)' : ''}\n`}`,
  );
}

/** Decisions of another version of the planner are no proof against the file. */
const others = ({ otherVersion }: { readonly otherVersion: number }): string =>
  otherVersion === 0
    ? ''
    : `, ${otherVersion} of another planner version ${otherVersion === 1 ? 'differs' : 'differ'}: check with the kronos that made the file`;
