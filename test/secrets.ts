import { forgetSecrets } from '@kronos/config/secret';

// A setup file of the tests, run before each of them: files share workers, and with them what the process knows.
forgetSecrets();
