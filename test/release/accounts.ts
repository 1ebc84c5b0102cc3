import { demoCloud } from '@kronos/simcloud';

export const scorerPassword = 'of the scorer';
/** Of the application credential of the executor's user. */
export const credentialSecret = 'of the credential';

/** The cloud of the demo, with the accounts that deploy/openstack/users makes. */
export const cloudWithAccounts = () => ({
  ...demoCloud(),
  users: [
    { name: 'kronos-scorer', password: scorerPassword, roles: ['admin'], project: 'kronos' },
    { name: 'kronos-executor', password: 'of the executor', roles: ['admin'], project: 'kronos' },
  ],
  applicationCredentials: [{ id: 'c1', name: 'kronos', secret: credentialSecret, user: 'kronos-executor' }],
});
