{{/* Everything beside the Deployment. */}}
{{- define "provider.all" -}}
{{- include "provider.check" . }}
{{ include "provider.deployment" . }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "provider.fullname" . }}
  namespace: {{ .Release.Namespace }}
  labels: {{- include "provider.labels" . | nindent 4 }}
  {{- with .Values.service.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ .Values.service.type }}
  selector: {{- include "provider.selector" . | nindent 4 }}
  ports:
    - {name: grpc, port: {{ .Values.service.port }}, targetPort: grpc, appProtocol: grpc}
{{- if .Values.bootstrap.enabled }}
---
# Where hosts ask what to do.
apiVersion: v1
kind: Service
metadata:
  name: {{ include "provider.fullname" . }}-bootstrap
  namespace: {{ .Release.Namespace }}
  labels: {{- include "provider.labels" . | nindent 4 }}
  {{- with .Values.bootstrap.service.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ .Values.bootstrap.service.type }}
  selector: {{- include "provider.selector" . | nindent 4 }}
  ports:
    - {name: bootstrap, port: 9003, targetPort: bootstrap, appProtocol: https}
{{- end }}
{{- if .Values.serviceAccount.create }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "provider.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
  labels: {{- include "provider.labels" . | nindent 4 }}
  {{- with .Values.serviceAccount.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
{{- if or .Values.offerings.content .Values.baseUserData.content }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "provider.fullname" . }}
  namespace: {{ .Release.Namespace }}
  labels: {{- include "provider.labels" . | nindent 4 }}
data:
  {{- if .Values.offerings.content }}
  offerings.yaml: {{ .Values.offerings.content | quote }}
  {{- end }}
  {{- if .Values.baseUserData.content }}
  base-user-data: {{ .Values.baseUserData.content | quote }}
  {{- end }}
{{- end }}
{{- if and .Values.state.enabled (not .Values.state.existingClaim) }}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ include "provider.fullname" . }}
  namespace: {{ .Release.Namespace }}
  labels: {{- include "provider.labels" . | nindent 4 }}
  annotations:
    # Fences, operations and bindings: a new installation goes on where the old one ended.
    helm.sh/resource-policy: keep
spec:
  accessModes: [{{ .Values.state.accessMode }}]
  {{- with .Values.state.storageClassName }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests:
      storage: {{ .Values.state.size }}
{{- end }}
{{- if .Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "provider.fullname" . }}
  namespace: {{ .Release.Namespace }}
  labels: {{- include "provider.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "provider.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    - ports: [{port: 9001, protocol: TCP}]
      from:
        {{- if .Values.networkPolicy.shards }}
        {{- toYaml .Values.networkPolicy.shards | nindent 8 }}
        {{- else }}
        - namespaceSelector: {}
          podSelector:
            matchLabels:
              app.kubernetes.io/name: bigfleet
              app.kubernetes.io/component: shard
        {{- end }}
    - ports: [{port: {{ .Values.metrics.port }}, protocol: TCP}]
      {{- with .Values.networkPolicy.monitoring }}
      from: {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- if .Values.bootstrap.enabled }}
    - ports: [{port: 9003, protocol: TCP}]
    {{- end }}
  egress:
    - ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
    {{- with .Values.networkPolicy.egressPorts }}
    # The cloud, and hosts where they are reached directly. A rule without ports would allow all of them.
    - ports:
        {{- range . }}
        - {port: {{ . }}, protocol: TCP}
        {{- end }}
    {{- end }}
{{- end }}
{{- if .Values.metrics.podMonitor.enabled }}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ include "provider.fullname" . }}
  namespace: {{ .Release.Namespace }}
  labels:
    {{- include "provider.labels" . | nindent 4 }}
    {{- with .Values.metrics.podMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  jobLabel: bigfleet.lucy.sh/job
  selector:
    matchLabels: {{- include "provider.selector" . | nindent 6 }}
  podMetricsEndpoints:
    - port: metrics
      interval: {{ .Values.metrics.podMonitor.interval }}
{{- end }}
{{- end -}}

{{- define "provider.notes" -}}
{{- $name := include "provider.fullname" . -}}
Provider {{ .Chart.Name }} serves at {{ $name }}.{{ .Release.Namespace }}.svc:{{ .Values.service.port }}.

    kubectl -n {{ .Release.Namespace }} rollout status deployment/{{ $name }}
    bigfleetctl register-provider {{ index .Values.config "provider" | default $name }} {{ $name }}.{{ .Release.Namespace }}.svc:{{ .Values.service.port }} --region REGION
{{ if not .Values.tls.enabled }}
WARNING: gRPC is in plaintext. Set tls.enabled and tls.secretName.
{{ end }}
{{- if not .Values.state.enabled }}
WARNING: the state is lost at every restart.
{{ end }}
{{- end -}}
