import { ConfigError, parsePolicies } from '@kronos/config';
import { defaultEngineOptions, type EngineOptions, type Policy } from '@kronos/contracts';
import type { Cooldowns } from '@kronos/projections';
import type { Change, History, Range } from '@kronos/replay';
import { UsageError } from '../errors.ts';
import { withSession } from '../open.ts';
import { isEvidence, openRecording } from '../recordings.ts';
import type { Shell } from '../shell.ts';
import { partOfRange } from '../times.ts';
import { overridesOf, readCooldownsFile, readText, settingsOf } from './inputs.ts';
import type { ReplayOptions } from './replay/input.ts';
import { runVerify } from './replay/verify.ts';
import { runWhatIf } from './replay/whatIf.ts';

/** kronos replay. */
export async function replayCommand(
  shell: Shell,
  directory: string | undefined,
  options: ReplayOptions,
): Promise<void> {
  // Mistakes show before anything is read.
  const asked = askedOf(shell, options);
  if (directory !== undefined && isEvidence(directory)) {
    const { readEvidence, withRecordingOf } = await import('@kronos/evidence');
    await withRecordingOf(directory, readEvidence(directory, readText('replay', directory)), (unpacked, changed) =>
      replayRecording(shell, unpacked, asked, changed),
    );
    return;
  }
  if (directory !== undefined) {
    await replayRecording(shell, directory, asked, []);
    return;
  }
  await withSession(shell, options, async ({ history }) => {
    const running = { defaults: defaultEngineOptions, seeded: undefined, problems: [] };
    await replay(shell, asked, history, running);
  });
}

/** The request of a person, parsed and checked. */
type Asked = { readonly options: ReplayOptions; readonly range: Range; readonly change: Omit<Change, 'defaults'> };

/** @throws UsageError, ConfigError, CooldownsInvalid */
function askedOf(shell: Shell, options: ReplayOptions): Asked {
  const range = {
    ...partOfRange(options, shell.now()),
    ...(options.aggregate === undefined ? {} : { aggregates: options.aggregate }),
  };
  const overrides = overridesOf(settingsOf(options));
  const change = {
    options: (recorded: EngineOptions) => ({ ...recorded, ...overrides }),
    ...(options.policies === undefined ? {} : { policies: readPolicies(options.policies) }),
    ...(options.cooldowns === undefined ? {} : { cooldowns: readCooldownsFile(options.cooldowns) }),
  };
  return { options, range, change };
}

/** @param changed what was changed in the file that the directory was unpacked from */
async function replayRecording(
  shell: Shell,
  directory: string,
  asked: Asked,
  changed: readonly string[],
): Promise<void> {
  const { history, about, cooldowns, problems } = await openRecording(shell, directory);
  const [first] = Object.values(about.options);
  const edited = Object.values(cooldowns).some((section) => Object.keys(section).length > 0);
  await replay(shell, asked, history, {
    defaults: first ?? defaultEngineOptions,
    seeded: edited ? cooldowns : undefined,
    problems: [...changed, ...problems],
  });
}

type Source = {
  readonly defaults: EngineOptions;
  readonly seeded: Cooldowns | undefined;
  /** The changes in a recorded directory. */
  readonly problems: readonly string[];
};

async function replay(
  shell: Shell,
  { options, range, change }: Asked,
  history: History,
  { defaults, seeded, problems }: Source,
): Promise<void> {
  const cooldowns = change.cooldowns ?? seeded;
  const changed =
    settingsOf(options).length > 0 ||
    change.policies !== undefined ||
    cooldowns !== undefined ||
    options.whatIf === true;
  if (!changed) {
    for (const name of ['chart', 'moves'] as const)
      if (options[name] !== undefined)
        throw new UsageError(`--${name} needs a what-if`, 'Add --set, --planner, --policies or --what-if.');
    await runVerify(shell, options, { history, range: await verifiedRange(options, history, range), problems });
    return;
  }
  if (options.strict === true)
    throw new UsageError('--strict compares recorded decisions and cannot be used with a what-if');
  const from = cooldowns === undefined ? null : (options.cooldowns ?? 'the recording');
  const all: Change = { ...change, defaults, ...(cooldowns === undefined ? {} : { cooldowns }) };
  await runWhatIf(shell, options, { history, range, problems }, { name: whatIfName(options, from), change: all });
}

/** @param cooldowns where they come from; null: from the log */
function whatIfName(options: ReplayOptions, cooldowns: string | null): string {
  const parts = [
    ...settingsOf(options),
    ...(options.policies === undefined ? [] : [`policies of ${options.policies}`]),
    ...(cooldowns === null ? [] : [`cooldowns of ${cooldowns}`]),
  ];
  return parts.length === 0 ? 'every plan carried out at once' : parts.join(', ');
}

/** Without --since and --until, the range of the kept snapshots: decisions without a snapshot are run again only in a given range. */
async function verifiedRange(options: ReplayOptions, history: History, range: Range): Promise<Range> {
  const { sinceMs, untilMs, aggregates } = await history.kept();
  return {
    ...(aggregates === undefined ? {} : { aggregates }),
    ...range,
    ...(options.since === undefined && sinceMs !== undefined ? { sinceMs } : {}),
    ...(options.until === undefined && untilMs !== undefined ? { untilMs } : {}),
  };
}

function readPolicies(file: string): readonly Policy[] {
  const { policies, problems } = parsePolicies({ file, text: readText('--policies', file) });
  if (problems.length > 0) throw new ConfigError(problems);
  return policies;
}
