/** The commands of a person from an empty system to the first plan, and their output: docs/transcripts. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@kronos/clock';

type Transcript = {
  /** Notes a file that a person writes. */
  readonly wrote: (path: string, text: string) => void;
  /** Notes a command with its answer and its time. */
  readonly typed: (command: string, run: () => Promise<string>) => Promise<string>;
  /** Writes the page NAME.md, made by the command `how`, to the directory that KRONOS_TRANSCRIPTS names. */
  readonly write: (page: { readonly name: string; readonly title: string; readonly how: string }) => void;
};

const LONGEST_ANSWER = 40;
/** `home`: the directory of the person; the page has ~ for it. Default: that of root on a system that the tests boot. */
export function transcript(home = '/root'): Transcript {
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
      const shown = lines.slice(-LONGEST_ANSWER).map((line) => line.replaceAll(home, '~'));
      const asked = command
        .trim()
        .split('\n')
        .map((line) => `$ ${line}`);
      parts.push(`\`\`\`txt\n${[...asked, ...shown].join('\n').trimEnd()}\n\`\`\`\n\n${took.toFixed(1)} s\n`);
      return answer;
    },
    write: ({ name, title, how }) => {
      const directory = process.env.KRONOS_TRANSCRIPTS;
      if (directory === undefined) return;
      const minutes = (seconds / 60).toFixed(1);
      const made = `Made by \`KRONOS_TRANSCRIPTS=docs/transcripts ${how}\`.`;
      const summary = `${made} The commands took ${minutes} minutes; ${typedLines} lines are to be typed or pasted.\n`;
      writeFileSync(join(directory, `${name}.md`), [`# ${title}\n`, summary, ...parts].join('\n'));
    },
  };
}
