import { onNewest } from '@kronos/eventlog/testing/newest';
import { it } from 'vitest';
import { runUnderUsers, titleOf } from './underUsers.ts';

onNewest('services under users of their own', (server) => {
  it(titleOf(server), () => runUnderUsers(server));
});
