/** What a person types on the way from an empty system to the first plan, and what the system answers: docs/transcripts. */
import { writeFileSync } from 'node:fs';
import { systemClock } from '@kronos/clock';

type Transcript = {
  /** Notes a file that a person writes. */
  readonly wrote: (path: string, text: string) => void;
  /** Notes a command with its answer and its time. */
  readonly typed: (command: string, run: () => Promise<string>) => Promise<string>;
  /** Writes the page to the file that KRONOS_TRANSCRIPT names. */
  readonly write: (title: string, how: string) => void;
};

const LONGEST_ANSWER = 40;
/** The directory of the person on a system that the tests boot. */
const HOME = '/root';

export function transcript(): Transcript {
  const parts: string[] = [];
  let seconds = 0;
  let typedLines = 0;
  const typing = (text: string): void => {
    typedLines += text.trim().split('\n').length;
  };
  return {
    wrote: (path, text) => {
      typing(text);
      parts.push(`\`${path}\`:\n\n\`\`\`txt\n${text.trimEnd()}\n\`\`\`\n`);
    },
    typed: async (command, run) => {
      const began = systemClock.monotonic();
      const answer = await run();
      const took = (systemClock.monotonic() - began) / 1000;
      seconds += took;
      typing(command);
      // Without what a progress bar writes over.
      const lines = answer
        .trimEnd()
        .split('\n')
        .map((line) => (line.trimEnd().split('\r').at(-1) ?? '').trimEnd());
      const shown = lines.slice(-LONGEST_ANSWER).map((line) => line.replaceAll(HOME, '~'));
      const asked = command
        .trim()
        .split('\n')
        .map((line) => `$ ${line}`);
      parts.push(`\`\`\`txt\n${[...asked, ...shown].join('\n').trimEnd()}\n\`\`\`\n\n${took.toFixed(1)} s\n`);
      return answer;
    },
    write: (title, how) => {
      const file = process.env.KRONOS_TRANSCRIPT;
      if (file === undefined) return;
      const minutes = (seconds / 60).toFixed(1);
      const summary = `Made by \`${how}\`. The commands took ${minutes} minutes; ${typedLines} lines are to be typed or pasted.\n`;
      writeFileSync(file, [`# ${title}\n`, summary, ...parts].join('\n'));
    },
  };
}
