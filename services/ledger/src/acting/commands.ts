/** Commands of people: what one would do, and giving it. */
import { randomUUID } from 'node:crypto';
import { giveCommand, requireCells, requireUnblocked } from '@kronos/operator';
import { type ActingAnswer, type CommandRequest, requests } from '../api/commandSchemas.ts';
import { confirmedCommand, drainLines, foreseen } from './command.ts';
import type { Acting, ActingInput } from './deps.ts';
import type { People } from './people.ts';
import { rateLimit } from './rateLimit.ts';
import { limited, parsed, Refused } from './refused.ts';
import type { PersonSession } from './sessions.ts';

/** Requests of one session: a person confirms each command, and looks at it before. */
const COMMANDS = { most: 60, perMs: 60_000 };

export type Commands = {
  /** The effect that a command would have now. @throws Refused, CommandRefused, ApiError */
  readonly foresee: (session: PersonSession, body: unknown) => Promise<ActingAnswer<'foresee'>>;
  /** Gives a command that the person has confirmed. @throws Refused, Changed, CommandRefused, ClockWrong, ApiError */
  readonly give: (session: PersonSession, body: unknown) => Promise<ActingAnswer<'give'>>;
};

/** To skip events, a person needs a role beyond those for commands about VMs. @throws Refused */
function checkCustodian(
  { options, custody }: Acting,
  command: CommandRequest,
  { custodian }: Pick<PersonSession, 'custodian'>,
): void {
  if (command.command !== 'skip' || custodian) return;
  throw new Refused(
    403,
    custody === null || options.custodianRoles.length === 0
      ? 'nobody may skip events from the console: [console] custodian_roles is empty. Use kronos log skip'
      : `skipping events needs one of the roles ${options.custodianRoles.join(', ')} on the project ${options.projectName}`,
  );
}

export function createCommands(
  acting: Acting,
  input: Omit<ActingInput, 'acting'>,
  people: Pick<People, 'mayStill'>,
): Commands {
  const { options, log, custody } = acting;
  const { clock, logger } = input;
  const commands = rateLimit(COMMANDS, input.monotonic);

  const asking = (session: PersonSession, comment: string | null) => ({
    commandId: randomUUID(),
    person: session.person,
    version: input.version,
    comment,
  });

  /** @returns facts beside the state, in words. @throws CommandRefused, ApiError */
  async function checkPossible(command: CommandRequest): Promise<readonly string[]> {
    if (command.command === 'cellsPlan') requireCells(options.cells, input.scope, command.aggregate, command.to);
    if (command.command !== 'drain') return [];
    const drain = await input.drain(command.aggregate, command.host);
    requireUnblocked(drain);
    return drainLines(drain);
  }

  return {
    async foresee(session, body) {
      limited(commands(session.csrf));
      const { command } = parsed(requests.foresee, body);
      checkCustodian(acting, command, session);
      await input.view.refresh();
      const known = await checkPossible(command);
      const { state } = input.view.at();
      const { effect, says, planId, digest } = foreseen(state, input.scope, command, {
        ...asking(session, null),
        nowMs: clock(),
      });
      return { effect, says: [...says, ...known], planId, digest };
    },

    async give(session, body) {
      limited(commands(session.csrf));
      const { command, digest, comment: said } = parsed(requests.give, body);
      const comment = said === null || said.trim() === '' ? null : said.trim();
      if (command.command === 'skip' && comment === null)
        throw new Refused(400, 'a skip needs a reason, which is shown permanently: give a comment');
      checkCustodian(acting, command, await people.mayStill(session));
      await input.view.refresh();
      await checkPossible(command);
      const writer = command.command === 'skip' && custody !== null ? custody : log;
      const told = await giveCommand(
        { append: (message, how) => writer.append(message, how), readClock: () => input.log.readClock() },
        input,
        {
          ...asking(session, comment),
          now: clock,
          maxSkewMs: input.maxSkewMs,
          onSkew: (problem) => logger.warn({ problem }, 'a command was given with a wrong clock'),
          onUnchanged: true,
        },
        (state, who) => confirmedCommand(state, input.scope, { command, digest }, who),
      );
      const { command: type, aggregate, sequence, commandId, effect } = told;
      logger.info({ person: session.person, type, aggregate, sequence, commandId, effect }, 'a person gave a command');
      return told;
    },
  };
}
