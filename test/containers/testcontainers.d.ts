// What the tests use of testcontainers, so that the project can be checked where it is not installed.
declare module 'testcontainers' {
  export interface StartedNetwork {
    getName(): string;
    stop(): Promise<unknown>;
  }
  export class Network {
    start(): Promise<StartedNetwork>;
  }
  export interface StartedContainer {
    getId(): string;
    getHost(): string;
    getMappedPort(port: number): number;
    stop(options?: { timeout?: number; remove?: boolean }): Promise<unknown>;
  }
  export class GenericContainer {
    constructor(image: string);
    protected hostConfig: Record<string, unknown>;
    withName(name: string): this;
    withNetwork(network: StartedNetwork): this;
    withNetworkAliases(...aliases: string[]): this;
    withCommand(command: string[]): this;
    withEnvironment(environment: Record<string, string>): this;
    withExposedPorts(...ports: number[]): this;
    withBindMounts(mounts: { source: string; target: string; mode?: 'ro' | 'rw' }[]): this;
    withWaitStrategy(strategy: unknown): this;
    withStartupTimeout(milliseconds: number): this;
    start(): Promise<StartedContainer>;
  }
  export const Wait: {
    forHealthCheck(): unknown;
    forOneShotStartup(): unknown;
    forHttp(path: string, port: number): unknown;
    forLogMessage(text: string | RegExp): unknown;
  };
}
