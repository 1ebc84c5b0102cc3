{{/* The value of app.kubernetes.io/name. */}}
{{- define "kronos.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The prefix of all names: short enough for the longest suffix. */}}
{{- define "kronos.fullname" -}}
{{ .Values.fullnameOverride | default .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "kronos.labels" -}}
app.kubernetes.io/name: {{ include "kronos.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "kronos.image" -}}
{{- $prefix := ternary "" (printf "%s/" (trimSuffix "/" .root.Values.image.registry)) (empty .root.Values.image.registry) -}}
{{- $name := ternary "kronos" (printf "kronos-%s" .component) (eq .component "kronos") -}}
{{ $prefix }}{{ $name }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{- define "kronos.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "kronos.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* What every container is told about NATS, OpenStack and telemetry. user: the NATS user; component: for [nova]. */}}
{{- define "kronos.environment" -}}
- { name: OS_NATS__SERVERS, value: {{ join "," .root.Values.nats.servers | quote }} }
- { name: OS_NATS__REPLICAS, value: {{ .root.Values.nats.replicas | quote }} }
- { name: OS_NATS__NKEY_SEED_FILE, value: /run/kronos/nats/seed }
{{- if .root.Values.nats.caSecret }}
- { name: OS_NATS__TLS_CA, value: /run/kronos/nats-ca/ca.crt }
{{- end }}
{{- with index .root.Values.openstack (.component | default "none") }}
{{- range $option, $value := .options }}
- { name: OS_NOVA__{{ upper $option }}, value: {{ $value | quote }} }
{{- end }}
- name: OS_NOVA__{{ ternary "APPLICATION_CREDENTIAL_SECRET_FILE" "PASSWORD_FILE" (eq (index .options "auth_type" | default "password") "v3applicationcredential") }}
  value: /run/kronos/openstack/secret
{{- if $.root.Values.openstack.caSecret }}
- { name: OS_NOVA__CAFILE, value: /run/kronos/openstack-ca/ca.crt }
{{- end }}
{{- end }}
{{- if and (eq (.user | default "") "ledger") .root.Values.nats.seedSecrets.console }}
- { name: OS_CONSOLE__NATS_NKEY_SEED_FILE, value: /run/kronos/nats-console/seed }
{{- if .root.Values.openstack.caSecret }}
- { name: OS_CONSOLE__CAFILE, value: /run/kronos/openstack-ca/ca.crt }
{{- end }}
{{- end }}
{{- if .root.Values.telemetry.otlpEndpoint }}
- { name: OS_TELEMETRY__OTLP_ENDPOINT, value: {{ .root.Values.telemetry.otlpEndpoint | quote }} }
{{- end }}
{{- end }}

{{- define "kronos.mounts" -}}
- { name: config, mountPath: /etc/kronos, readOnly: true }
- { name: nats, mountPath: /run/kronos/nats, readOnly: true }
{{- if .root.Values.nats.caSecret }}
- { name: nats-ca, mountPath: /run/kronos/nats-ca, readOnly: true }
{{- end }}
{{- if and (eq (.user | default "") "ledger") .root.Values.nats.seedSecrets.console }}
- { name: nats-console, mountPath: /run/kronos/nats-console, readOnly: true }
{{- if .root.Values.openstack.caSecret }}
- { name: openstack-ca, mountPath: /run/kronos/openstack-ca, readOnly: true }
{{- end }}
{{- end }}
{{- if index .root.Values.openstack (.component | default "none") }}
- { name: openstack, mountPath: /run/kronos/openstack, readOnly: true }
{{- if .root.Values.openstack.caSecret }}
- { name: openstack-ca, mountPath: /run/kronos/openstack-ca, readOnly: true }
{{- end }}
{{- end }}
{{- end }}

{{- define "kronos.volumes" -}}
- name: config
  configMap: { name: {{ include "kronos.fullname" .root }}-config }
- name: nats
  secret: { secretName: {{ index .root.Values.nats.seedSecrets .user }}, defaultMode: 0440 }
{{- with .root.Values.nats.caSecret }}
- name: nats-ca
  secret: { secretName: {{ . }} }
{{- end }}
{{- if and (eq (.user | default "") "ledger") .root.Values.nats.seedSecrets.console }}
- name: nats-console
  secret: { secretName: {{ .root.Values.nats.seedSecrets.console }}, defaultMode: 0440 }
{{- with .root.Values.openstack.caSecret }}
- name: openstack-ca
  secret: { secretName: {{ . }} }
{{- end }}
{{- end }}
{{- with index .root.Values.openstack (.component | default "none") }}
- name: openstack
  secret: { secretName: {{ required "openstack: each account needs the name of its secret" .secret }}, defaultMode: 0440 }
{{- with $.root.Values.openstack.caSecret }}
- name: openstack-ca
  secret: { secretName: {{ . }} }
{{- end }}
{{- end }}
{{- end }}

{{- define "kronos.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* The address that the services listen on: all of the pod's where a network policy decides who may connect, else the pod's own. */}}
{{- define "kronos.address" -}}
{{ .Values.http.address | default (ternary "0.0.0.0" "127.0.0.1" .Values.networkPolicy.enabled) }}
{{- end }}

{{/* How a path of the HTTP server is asked for. path: /healthz...; root. */}}
{{- define "kronos.probe" -}}
{{- if eq (include "kronos.address" .root) "127.0.0.1" -}}
exec: { command: [node, /app/health.mjs, {{ .path }}] }
{{- else -}}
httpGet: { path: {{ .path }}, port: http }
{{- end }}
{{- end }}

{{/* One deployment of a service. component: scorer...; name: of the deployment; args, replicas, resources, port. */}}
{{- define "kronos.service" -}}
{{- $root := .root }}
{{- $labels := dict "app.kubernetes.io/name" (include "kronos.name" .root) "app.kubernetes.io/instance" .root.Release.Name "app.kubernetes.io/component" .component "kronos/deployment" .name }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "kronos.fullname" .root }}-{{ .name }}
  labels:
    {{- include "kronos.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  replicas: {{ .replicas }}
  strategy: { type: {{ ternary "Recreate" "RollingUpdate" (not (empty .archive)) }} }
  selector:
    matchLabels: {{ toYaml $labels | nindent 6 }}
  template:
    metadata:
      labels:
        {{- toYaml $labels | nindent 8 }}
        {{- with .root.Values.podLabels }}{{ toYaml . | nindent 8 }}{{ end }}
      annotations:
        # A changed configuration starts the pods anew.
        kronos/config: {{ .root.Values.config | toYaml | sha256sum }}
        {{- with .root.Values.podAnnotations }}{{ toYaml . | nindent 8 }}{{ end }}
    spec:
      serviceAccountName: {{ include "kronos.fullname" .root }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      # The longest orderly stop is 10 s.
      terminationGracePeriodSeconds: 20
      securityContext: {{ include "kronos.podSecurity" . | nindent 8 }}
      {{- include "kronos.placement" .root | nindent 6 }}
      {{- if not .root.Values.affinity }}
      # Replicas on different nodes, where there are some.
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{ toYaml $labels | nindent 14 }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "kronos.image" . }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          {{- with .args }}
          args: {{ toJson . }}
          {{- end }}
          env:
            {{- include "kronos.environment" . | nindent 12 }}
            - { name: OS_HTTP__ADDRESS, value: {{ include "kronos.address" .root | quote }} }
            {{- $name := printf "%s-ledger" (include "kronos.fullname" .root) }}
            {{- $space := .root.Release.Namespace }}
            {{- $hosts := concat (list $name (printf "%s.%s" $name $space) (printf "%s.%s.svc" $name $space) (printf "%s.%s.svc.cluster.local" $name $space)) .root.Values.http.allowedHosts (include "kronos.ingressHosts" .root | fromJsonArray) }}
            - { name: OS_HTTP__ALLOWED_HOSTS, value: {{ join "," $hosts | quote }} }
            {{- if .archive }}
            - { name: OS_LEDGER__ARCHIVE_DIR, value: /var/lib/kronos }
            {{- end }}
          ports:
            - { name: http, containerPort: {{ .port }} }
          startupProbe:
            {{- include "kronos.probe" (dict "root" .root "path" "/healthz") | nindent 12 }}
            timeoutSeconds: 5
            periodSeconds: 2
            failureThreshold: 60
          livenessProbe:
            {{- include "kronos.probe" (dict "root" .root "path" "/healthz") | nindent 12 }}
            periodSeconds: 15
            timeoutSeconds: 5
          readinessProbe:
            {{- include "kronos.probe" (dict "root" .root "path" "/readyz") | nindent 12 }}
            periodSeconds: 10
            timeoutSeconds: 6
          securityContext: {{ include "kronos.containerSecurity" . | nindent 12 }}
          resources: {{ toYaml .resources | nindent 12 }}
          volumeMounts:
            {{- include "kronos.mounts" . | nindent 12 }}
            {{- if .archive }}
            - { name: archive, mountPath: /var/lib/kronos }
            {{- end }}
      volumes:
        {{- include "kronos.volumes" . | nindent 8 }}
        {{- if .archive }}
        - name: archive
          persistentVolumeClaim: { claimName: {{ include "kronos.fullname" .root }}-archive }
        {{- end }}
{{- if and .root.Values.podDisruptionBudget.enabled (gt (int .replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "kronos.fullname" .root }}-{{ .name }}
  labels: {{ include "kronos.labels" .root | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{ toYaml $labels | nindent 6 }}
{{- end }}
{{- end }}

{{/* The host names of the ingress, as JSON. */}}
{{- define "kronos.ingressHosts" -}}
{{ ternary (list .Values.ingress.host) list .Values.ingress.enabled | toJson }}
{{- end }}
