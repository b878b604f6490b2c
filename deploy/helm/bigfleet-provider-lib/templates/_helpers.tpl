{{/* Names and parts that all objects of a provider share. */}}
{{- define "provider.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "provider.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "provider.labels" -}}
{{ include "provider.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: bigfleet
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "provider.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "provider.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* What cannot be rendered, with the reason. */}}
{{- define "provider.check" -}}
{{- $name := include "provider.fullname" . -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- fail (printf "%q cannot be a Service's name: use a release name, or fullnameOverride, of small letters, digits and dashes that begins with a letter" $name) -}}
{{- end -}}
{{- if and (hasKey .Values "replicaCount") (ne (int .Values.replicaCount) 1) -}}
{{- fail "replicaCount must be 1: a provider is the only writer of its state; run another one with another label instead" -}}
{{- end -}}
{{- if and (not .Values.state.enabled) (not .Values.state.iUnderstandStateIsLost) -}}
{{- fail "state.enabled=false loses fences and operations at every restart; say state.iUnderstandStateIsLost=true if you mean it" -}}
{{- end -}}
{{- if and .Values.tls.enabled (not .Values.tls.secretName) -}}
{{- fail "tls.secretName is required with tls.enabled: a Secret with tls.crt, tls.key and ca.crt" -}}
{{- end -}}
{{- if and .Values.bootstrap.enabled (not (and .Values.bootstrap.tls.secretName .Values.bootstrap.secretName)) -}}
{{- fail "bootstrap.enabled needs bootstrap.tls.secretName, a Secret with tls.crt and tls.key, and bootstrap.secretName, one with the key secret" -}}
{{- end -}}
{{- range $name := list "addr" "metrics-addr" "state" "offerings" "base-user-data" "cluster-kubeconfigs" "tls-cert" "tls-key" "tls-ca" "reflection" -}}
{{- if or (hasKey $.Values.config $name) (hasKey $.Values.config (snakecase $name)) -}}
{{- fail (printf "config.%s is set by the chart: use the value of its own" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A value as text; of large whole numbers helm would make 1e+06. */}}
{{- define "provider.text" -}}
{{- if kindIs "float64" . }}{{ ternary (int64 . | toString) (toString .) (eq (floor .) .) }}{{ else }}{{ toString . }}{{ end -}}
{{- end -}}

{{/* The options in config as flags, by their names. */}}
{{- define "provider.flags" -}}
{{- range $name, $value := . }}
{{- if kindIs "map" $value }}
{{- $pairs := list }}
{{- range $key, $one := $value }}{{ $pairs = append $pairs (printf "%s=%v" $key $one) }}{{ end }}
- {{ printf "--%s=%s" (kebabcase $name) (join "," $pairs) | quote }}
{{- else if kindIs "slice" $value }}
- {{ printf "--%s=%s" (kebabcase $name) (join "," $value) | quote }}
{{- else }}
- {{ printf "--%s=%s" (kebabcase $name) (include "provider.text" $value) | quote }}
{{- end }}
{{- end }}
{{- end -}}
