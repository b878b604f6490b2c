{{/* Names and parts that all objects of this chart share. */}}
{{- define "operator.fullname" -}}
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

{{- define "operator.selector" -}}
app.kubernetes.io/name: bigfleet-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "operator.labels" -}}
{{ include "operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "operator.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* A template that ships is named; another one is a file of the ConfigMap. */}}
{{- define "operator.shipped" -}}
{{- if has .Values.bootstrapTemplate (list "kubeadm" "k3s" "eks") -}}yes{{- end -}}
{{- end -}}

{{/* A value as text; of large whole numbers helm would make 1e+06. */}}
{{- define "operator.text" -}}
{{- if kindIs "float64" . }}{{ ternary (int64 . | toString) (toString .) (eq (floor .) .) }}{{ else }}{{ toString . }}{{ end -}}
{{- end -}}

{{/* A map of settings as flags: true is a switch, a list repeats the flag. */}}
{{- define "operator.flags" -}}
{{- range $name, $value := . }}
{{- $flag := kebabcase $name }}
{{- if kindIs "bool" $value }}
- {{ ternary (printf "--%s" $flag) (printf "--no-%s" $flag) $value }}
{{- else if kindIs "slice" $value }}
{{- range $value }}
- {{ printf "--%s=%s" $flag (include "operator.text" .) | quote }}
{{- end }}
{{- else }}
- {{ printf "--%s=%s" $flag (include "operator.text" $value) | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "operator.check" -}}
{{- if not .Values.clusterID -}}
{{- fail "clusterID is required: the id of this cluster, chosen once; --set clusterID=prod-eu-1" -}}
{{- end -}}
{{- if not .Values.shardAddress -}}
{{- fail "shardAddress is required: host:port of this cluster's shard; --set shardAddress=shard.example.com:7780" -}}
{{- end -}}
{{- if not (or .Values.bootstrapTemplate .Values.allowStubBootstrap) -}}
{{- fail "bootstrapTemplate is required: kubeadm, k3s, eks or the text of a template; for first steps --set allowStubBootstrap=true" -}}
{{- end -}}
{{- if and .Values.bootstrapTemplate (not (include "operator.shipped" .)) (not (regexMatch "[\n{]" .Values.bootstrapTemplate)) -}}
{{- fail (printf "bootstrapTemplate %q is not kubeadm, k3s or eks, and one line is not a template; --set-file bootstrapTemplate=join.sh.j2 takes the text of a file" .Values.bootstrapTemplate) -}}
{{- end -}}
{{- end -}}
