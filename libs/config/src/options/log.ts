import { choice, EVERYONE } from '../option.ts';

/** The options of the section `[log]`. */
export const log = {
  level: choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'info', {
    by: EVERYONE,
    help: 'Log this level and the levels above it.',
  }),
  format: choice(['auto', 'json', 'pretty'], 'auto', {
    by: EVERYONE,
    help: 'json: one object per line. pretty: for people. auto: pretty on a terminal, else json.',
  }),
} as const;
