{{/* Names and parts that all objects of this chart share. */}}
{{- define "bigfleet.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "bigfleet.selector" -}}
app.kubernetes.io/name: bigfleet
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "bigfleet.labels" -}}
{{ include "bigfleet.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "bigfleet.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "bigfleet.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "bigfleet.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{- define "bigfleet.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "bigfleet.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* startup and liveness /healthz, readiness /readyz */}}
{{- define "bigfleet.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: 150
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}

{{- define "bigfleet.podIdentity" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- end -}}

{{/* A value as text; of large whole numbers helm would make 1e+06. */}}
{{- define "bigfleet.text" -}}
{{- if kindIs "float64" . }}{{ ternary (int64 . | toString) (toString .) (eq (floor .) .) }}{{ else }}{{ toString . }}{{ end -}}
{{- end -}}

{{/* A map of settings as flags: true is a switch, a list repeats the flag. */}}
{{- define "bigfleet.flags" -}}
{{- range $name, $value := . }}
{{- $flag := kebabcase $name }}
{{- if kindIs "bool" $value }}
- {{ ternary (printf "--%s" $flag) (printf "--no-%s" $flag) $value }}
{{- else if kindIs "slice" $value }}
{{- range $value }}
- {{ printf "--%s=%s" $flag (include "bigfleet.text" .) | quote }}
{{- end }}
{{- else }}
- {{ printf "--%s=%s" $flag (include "bigfleet.text" $value) | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* host:port of every coordinator */}}
{{- define "bigfleet.coordinators" -}}
{{- $name := include "bigfleet.fullname" . -}}
{{- $all := list -}}
{{- range $i := until (int .Values.coordinator.replicas) -}}
{{- $all = append $all (printf "%s-coordinator-%d.%s-coordinator-pods.%s.svc:%d" $name $i $name $.Release.Namespace (int $.Values.coordinator.port)) -}}
{{- end -}}
{{- join "," $all -}}
{{- end -}}

{{- define "bigfleet.ownEtcd" -}}
{{- if and (gt (int .Values.coordinator.replicas) 1) (not .Values.coordinator.etcd.endpoints) -}}yes{{- end -}}
{{- end -}}

{{- define "bigfleet.usesEtcd" -}}
{{- if or (gt (int .Values.coordinator.replicas) 1) .Values.coordinator.etcd.endpoints -}}yes{{- end -}}
{{- end -}}

{{/* Where the coordinator's state is: sqlite, or etcd://host:port,...[/prefix] */}}
{{- define "bigfleet.store" -}}
{{- if include "bigfleet.usesEtcd" . -}}
{{- $hosts := .Values.coordinator.etcd.endpoints -}}
{{- if include "bigfleet.ownEtcd" . -}}
{{- $name := include "bigfleet.fullname" . -}}
{{- $hosts = list -}}
{{- range $i := until 3 -}}
{{- $hosts = append $hosts (printf "%s-etcd-%d.%s-etcd.%s.svc:2379" $name $i $name $.Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- printf "etcd://%s%s" (join "," $hosts) (ternary (printf "/%s" .Values.coordinator.etcd.prefix) "" (ne .Values.coordinator.etcd.prefix "")) -}}
{{- else -}}
sqlite
{{- end -}}
{{- end -}}

{{/* Whether a store may be made now: as told, or at the first install. */}}
{{- define "bigfleet.bootstrap" -}}
{{- $told := .Values.coordinator.bootstrap -}}
{{- if and (kindIs "bool" $told) $told .Release.IsUpgrade -}}
{{- fail "coordinator.bootstrap=true is for the first install: a store exists already. Leave it out, or set it to false" -}}
{{- end -}}
{{- if kindIs "bool" $told -}}
{{- ternary "yes" "" $told -}}
{{- else if .Release.IsInstall -}}
yes
{{- end -}}
{{- end -}}

{{/* What cannot be rendered, with the reason. */}}
{{- define "bigfleet.check" -}}
{{- $name := include "bigfleet.fullname" . -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- fail (printf "%q cannot be part of a Service's name: use a release name, or fullnameOverride, of small letters, digits and dashes that begins with a letter" $name) -}}
{{- end -}}
{{- range $part, $port := dict "coordinator" .Values.metrics.coordinatorPort "shard" .Values.metrics.shardPort -}}
{{- if eq (int $port) (int (index $.Values $part).port) -}}
{{- fail (printf "metrics.%sPort and %s.port are both %d: give them different ports" $part $part (int $port)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.coordinator.etcd.auth -}}
{{- if ne (empty .username) (empty .secretName) -}}
{{- fail "coordinator.etcd.auth needs username and secretName: the user, and the Secret with its password" -}}
{{- end -}}
{{- end -}}
{{- end -}}
