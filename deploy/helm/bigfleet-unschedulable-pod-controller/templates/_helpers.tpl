{{/* Names and parts that all objects of this chart share. */}}
{{- define "podController.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "podController.selector" -}}
app.kubernetes.io/name: bigfleet-unschedulable-pod-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "podController.labels" -}}
{{ include "podController.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "podController.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "podController.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* A value as text; of large whole numbers helm would make 1e+06. */}}
{{- define "podController.text" -}}
{{- if kindIs "float64" . }}{{ ternary (int64 . | toString) (toString .) (eq (floor .) .) }}{{ else }}{{ toString . }}{{ end -}}
{{- end -}}

{{/* A map of settings as flags: true is a switch, a list repeats the flag. */}}
{{- define "podController.flags" -}}
{{- range $name, $value := . }}
{{- $flag := kebabcase $name }}
{{- if kindIs "bool" $value }}
- {{ ternary (printf "--%s" $flag) (printf "--no-%s" $flag) $value }}
{{- else if kindIs "slice" $value }}
{{- range $value }}
- {{ printf "--%s=%s" $flag (include "podController.text" .) | quote }}
{{- end }}
{{- else }}
- {{ printf "--%s=%s" $flag (include "podController.text" $value) | quote }}
{{- end }}
{{- end }}
{{- end -}}
