# nats-server from a binary that is at hand, where the official image cannot be pulled.
ARG BASE
FROM ${BASE}
COPY nats-server /usr/local/bin/nats-server
# The store of JetStream; owned by nobody, so that a volume mounted here is, too.
COPY --chown=65532:65532 data /data
USER 65532:65532
EXPOSE 4222 6222 8222
HEALTHCHECK --interval=5s --timeout=5s --start-period=20s CMD ["wget", "-q", "-O", "/dev/null", "http://127.0.0.1:8222/healthz"]
ENTRYPOINT ["nats-server"]
