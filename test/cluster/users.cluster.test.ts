import { it } from 'vitest';
import { onNewest } from './crew.ts';
import { runUnderUsers, titleOf } from './underUsers.ts';

onNewest('services under users of their own', (server) => {
  it(titleOf(server), () => runUnderUsers(server));
});
