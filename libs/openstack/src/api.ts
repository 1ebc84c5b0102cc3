import { type HttpCall, joinUrl, parseAs, safeUrl } from '@kronos/http';
import type { z } from 'zod';
import { BadAnswer } from './errors.ts';
import { negotiate, type VersionNeed, type VersionRange } from './microversion.ts';
import { versionsSchema } from './novaWire.ts';
import type { ServiceCall, Session } from './session.ts';

/** Parameters; an array repeats the name. */
export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** A service of the catalog that speaks microversions. */
export interface Api {
  /** The range of microversions the cloud offers, asked once and kept for an hour. */
  versions(signal?: AbortSignal): Promise<VersionRange>;
  /** The microversion that a call would use. @throws MicroversionUnsupported */
  negotiated(call: string, need: VersionNeed, signal?: AbortSignal): Promise<string>;
  /** A call at a microversion that was negotiated, ready for `Session.call`. */
  prepare(request: ApiRequest): Promise<ServiceCall>;
  /** Reads an answer by its schema. @throws HttpError, Unauthorized, Unreachable, Timeout, BadAnswer */
  get<S extends z.ZodType>(schema: S, request: GetRequest & { readonly version: string }): Promise<z.infer<S>>;
}

export interface GetRequest {
  /** The path with its ids as placeholders, e.g. `/servers/{id}`. */
  readonly route: string;
  /** Default: the route, where it has no placeholders. */
  readonly path?: string;
  readonly query?: Query;
  readonly signal?: AbortSignal | undefined;
}

interface ApiRequest extends GetRequest {
  readonly method: HttpCall['method'];
  readonly version: string;
  readonly json?: unknown;
  readonly expect?: readonly number[];
}

export interface ApiDescription {
  /** For messages and metrics. */
  readonly service: string;
  readonly serviceType: string;
  /** The path of the API below an unversioned endpoint, e.g. `v2.1`; empty when the endpoint is the API. */
  readonly versionPath: string;
  /** `id` of the version in the discovery document, as a pattern. */
  readonly versionId: RegExp;
  readonly headers: (version: string) => Readonly<Record<string, string>>;
}

const KEEP_MS = 3_600_000;

export function createApi(session: Session, api: ApiDescription): Api {
  let known: { range: VersionRange; until: number } | undefined;

  /** The endpoint down to its version: project ids that old catalogs append are cut. */
  async function root(signal?: AbortSignal): Promise<string> {
    const endpoint = await session.endpoint(api.serviceType, signal);
    if (api.versionPath === '') return endpoint;
    const versioned = /^(.*\/v\d+(?:\.\d+)?)(?:\/.*)?$/.exec(endpoint)?.[1];
    return versioned ?? `${endpoint}/${api.versionPath}`;
  }

  async function versions(signal?: AbortSignal): Promise<VersionRange> {
    if (known !== undefined && session.clock.monotonic() < known.until) return known.range;
    const url = `${await root(signal)}/`;
    const place = { service: api.service, method: 'GET', url: safeUrl(url) } as const;
    const answer = await session.call({ ...place, url, route: '/', expect: [200, 300, 404], signal });
    if (answer.status === 404) {
      throw new BadAnswer(
        place,
        `status 404: this is not ${api.service}; check the catalog or set an endpoint override`,
      );
    }
    const offered = parseAs(place, versionsSchema, answer.text).find((one) => api.versionId.test(one.id));
    const max = offered?.version || offered?.max_version;
    const min = offered?.min_version;
    if (max === undefined || min === undefined || max === '' || min === '') {
      throw new BadAnswer(
        place,
        `no version ${api.versionId.source} with microversions; is this ${api.service}?`,
        'versions',
      );
    }
    known = { range: { min, max }, until: session.clock.monotonic() + KEEP_MS };
    return known.range;
  }

  async function prepare({ route, path = route, query, version, ...request }: ApiRequest): Promise<ServiceCall> {
    const url = joinUrl(await root(request.signal), path, query);
    return { expect: [200], ...request, service: api.service, url, route, headers: api.headers(version) };
  }

  return {
    versions,
    async negotiated(call, need, signal) {
      return negotiate(api.service, call, await versions(signal), need);
    },
    prepare,
    async get(schema, request) {
      const prepared = await prepare({ ...request, method: 'GET' });
      const answer = await session.call(prepared);
      return parseAs({ service: api.service, method: 'GET', url: safeUrl(prepared.url) }, schema, answer.text);
    },
  };
}
