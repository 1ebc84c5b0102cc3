import { it } from 'vitest';
import { newest } from './crew.ts';
import { runUnderUsers, titleOf } from './underUsers.ts';

const server = newest;
if (typeof server === 'string') it.skip(`services under users of their own: ${server}`);
else it(titleOf(server), () => runUnderUsers(server));
