/** The calls of the console that act: sessions and commands. */
import type { ServerResponse } from 'node:http';
import { type HttpServer, sendJson } from '@kronos/telemetry';
import { ACTING } from '../api/endpoints.ts';
import { createCommands } from './commands.ts';
import type { ActingInput } from './deps.ts';
import { People } from './people.ts';
import { refusalOf } from './refused.ts';

/** Largest body of a request. */
const BODY_BYTES = 16 * 1024;

/** Adds log-in, log-out and commands to the server; without acting only the answer that there is none. */
export function addActing(http: HttpServer, { acting, ...input }: ActingInput): void {
  if (acting === null) {
    http.route(ACTING.session, (_, response) =>
      sendJson(response, 200, {
        acting: false,
        userDomainName: null,
        cells: [],
        custodian: false,
        person: null,
        csrf: null,
        until: null,
      }),
    );
    return;
  }
  const people = new People(acting, input);
  const commands = createCommands(acting, input, people);
  http.route(
    ACTING.session,
    (request, response, _url, body) =>
      answer(response, () => {
        if (request.method === 'POST') return people.logIn(request, response, body);
        if (request.method === 'DELETE') return people.logOut(request, response);
        return people.shown(request);
      }),
    { methods: ['GET', 'HEAD', 'POST', 'DELETE'], bodyBytes: BODY_BYTES },
  );
  const post = { methods: ['POST'], bodyBytes: BODY_BYTES };
  for (const act of ['foresee', 'give'] as const)
    http.route(
      ACTING[act],
      (request, response, _, body) => answer(response, () => commands[act](people.actor(request), body)),
      post,
    );
}

/** Answers with the result of an act, or with why it is refused. */
async function answer(response: ServerResponse, act: () => object | Promise<object>): Promise<void> {
  try {
    sendJson(response, 200, await act());
  } catch (error) {
    const refused = refusalOf(error);
    if (refused.retryAfterMs > 0) response.setHeader('retry-after', String(Math.ceil(refused.retryAfterMs / 1000)));
    sendJson(response, refused.status, { error: refused.message });
  }
}
