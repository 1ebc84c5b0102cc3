/** The configurations of a Dockerfile's images, by target. Pure. */

/** Durations in nanoseconds, as Docker keeps them. */
type HealthCheck = {
  readonly Test: readonly string[];
  readonly Interval?: number;
  readonly Timeout?: number;
  readonly StartPeriod?: number;
  readonly Retries?: number;
};

/** The configuration of an image, under the names of the OCI image specification; `Healthcheck` is Docker's. */
export type ImageConfig = {
  readonly User?: string;
  readonly WorkingDir?: string;
  readonly StopSignal?: string;
  readonly Env?: readonly string[];
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly Labels?: Readonly<Record<string, string>>;
  readonly ExposedPorts?: Readonly<Record<string, Record<string, never>>>;
  readonly Healthcheck?: HealthCheck;
};

const SECOND_NS = 1_000_000_000;
/** Option -> its name in the configuration, and what 1 is there. */
const HEALTH_OPTIONS: ReadonlyMap<string, readonly [name: string, unit: number]> = new Map([
  ['interval', ['Interval', SECOND_NS]],
  ['timeout', ['Timeout', SECOND_NS]],
  ['start-period', ['StartPeriod', SECOND_NS]],
  ['retries', ['Retries', 1]],
]);

/** `A=b C="d e"` as pairs. */
const pairs = (text: string): [string, string][] =>
  [...text.matchAll(/([\w.]+)=(?:"([^"]*)"|(\S+))/g)].map(([, name = '', quoted, plain]) => [
    name,
    quoted ?? plain ?? '',
  ]);

const list = (text: string): readonly string[] => JSON.parse(text) as readonly string[];

function healthCheck(text: string): HealthCheck {
  const [options = '', command = '[]'] = text.split(/ ?CMD /);
  const given: Record<string, number> = {};
  for (const option of options.split(' ')) {
    const [, name = '', value = ''] = /^--([\w-]+)=(\d+)s?$/.exec(option) ?? [];
    const [key, unit] = HEALTH_OPTIONS.get(name) ?? [];
    if (key === undefined || unit === undefined) throw new Error(`HEALTHCHECK ${option} is not known here`);
    given[key] = Number(value) * unit;
  }
  return { Test: ['CMD', ...list(command)], ...given };
}

/** Adds one instruction to a configuration; an instruction about files changes nothing. */
function extended(config: ImageConfig, name: string, text: string): ImageConfig {
  switch (name) {
    case 'USER':
      return { ...config, User: text };
    case 'WORKDIR':
      return { ...config, WorkingDir: text };
    case 'STOPSIGNAL':
      return { ...config, StopSignal: text };
    case 'ENV': {
      const env = new Map([
        ...(config.Env ?? []).map((line) => line.split(/=(.*)/s) as [string, string]),
        ...pairs(text),
      ]);
      return { ...config, Env: [...env].map(([key, value]) => `${key}=${value}`) };
    }
    case 'LABEL':
      return { ...config, Labels: { ...config.Labels, ...Object.fromEntries(pairs(text)) } };
    case 'EXPOSE':
      return { ...config, ExposedPorts: { ...config.ExposedPorts, [`${text}/tcp`]: {} } };
    case 'HEALTHCHECK':
      return { ...config, Healthcheck: healthCheck(text) };
    case 'ENTRYPOINT':
      return { ...config, Entrypoint: list(text) };
    case 'CMD':
      return { ...config, Cmd: list(text) };
    default:
      return config;
  }
}

/**
 * Target -> its configuration.
 *
 * @param args values of ARG, which the text names as `${NAME}`
 */
export function imageConfigs(dockerfile: string, args: Readonly<Record<string, string>>): Map<string, ImageConfig> {
  const configs = new Map<string, ImageConfig>();
  let target = '';
  const lines = dockerfile.replaceAll(/\\\n\s*/g, '').split('\n');
  for (const line of lines) {
    const filled = line.replaceAll(/\$\{(\w+)\}/g, (whole, name: string) => args[name] ?? whole);
    const [, name = '', text = ''] = /^([A-Z]+) (.*)$/.exec(filled) ?? [];
    if (name === 'FROM') {
      const [parent = '', , own = ''] = text.split(' ');
      target = own;
      configs.set(target, configs.get(parent) ?? {});
    } else if (target !== '') configs.set(target, extended(configs.get(target) ?? {}, name, text));
  }
  return configs;
}
