{{/* The one process: it alone writes its state, so the old one ends before the new one starts. */}}
{{- define "provider.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "provider.fullname" . }}
  namespace: {{ .Release.Namespace }}
  labels: {{- include "provider.labels" . | nindent 4 }}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector:
    matchLabels: {{- include "provider.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "provider.labels" . | nindent 8 }}
        bigfleet.lucy.sh/job: bigfleet-provider
      annotations:
        checksum/config: {{ printf "%s%s" .Values.offerings.content .Values.baseUserData.content | sha256sum }}
        {{- with .Values.credentials.secretName }}
        checksum/credentials: {{ lookup "v1" "Secret" $.Release.Namespace . | toJson | sha256sum }}
        {{- end }}
        {{- with .Values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "provider.serviceAccountName" . }}
      automountServiceAccountToken: {{ .Values.serviceAccount.automountToken }}
      enableServiceLinks: false
      terminationGracePeriodSeconds: 30
      {{- with .Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile: {type: RuntimeDefault}
      containers:
        - name: provider
          image: {{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          args: {{- include "provider.args" . | nindent 12 }}
          {{- with .Values.credentials.secretName }}
          envFrom:
            - secretRef: {name: {{ . }}}
          {{- end }}
          env:
            # By variables, which an image without these options ignores.
            - {name: BIGFLEET_PROVIDER_ALLOW_PLAINTEXT_PAGES, value: "true"}
            {{- if not .Values.tls.enabled }}
            - {name: BIGFLEET_PROVIDER_ALLOW_PLAINTEXT, value: "true"}
            {{- end }}
            {{- if and .Values.bootstrap.enabled .Values.bootstrap.secretName }}
            - name: BIGFLEET_BOOTSTRAP_SECRET
              valueFrom: {secretKeyRef: {name: {{ .Values.bootstrap.secretName }}, key: secret}}
            {{- end }}
          ports:
            - {name: grpc, containerPort: 9001}
            - {name: metrics, containerPort: {{ .Values.metrics.port }}}
            {{- if .Values.bootstrap.enabled }}
            - {name: bootstrap, containerPort: 9003}
            {{- end }}
          startupProbe:
            httpGet: {path: /healthz, port: metrics}
            periodSeconds: 2
            failureThreshold: 60
          livenessProbe:
            httpGet: {path: /healthz, port: metrics}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: {path: /readyz, port: metrics}
            periodSeconds: 5
            timeoutSeconds: 5
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          resources: {{- toYaml .Values.resources | nindent 12 }}
          volumeMounts: {{- include "provider.mounts" . | nindent 12 }}
      volumes: {{- include "provider.volumes" . | nindent 8 }}
      {{- with .Values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}

{{- define "provider.args" -}}
- --addr=:9001
- --metrics-addr=:{{ .Values.metrics.port }}
- --state={{ ternary "/var/lib/bigfleet/state.db" "memory" .Values.state.enabled }}
- --reflection={{ .Values.reflection }}
{{- if .Values.offerings.content }}
- --offerings=/etc/bigfleet/provider/offerings.yaml
{{- end }}
{{- if .Values.baseUserData.content }}
- --base-user-data=/etc/bigfleet/provider/base-user-data
{{- end }}
{{- if .Values.clusterKubeconfigs.secretName }}
- --cluster-kubeconfigs=/etc/bigfleet/clusters
{{- end }}
{{- if .Values.tls.enabled }}
- --tls-cert=/etc/bigfleet/tls/tls.crt
- --tls-key=/etc/bigfleet/tls/tls.key
- --tls-ca=/etc/bigfleet/tls/ca.crt
{{- end }}
{{- if .Values.bootstrap.enabled }}
- --bootstrap-addr=:9003
- --bootstrap-tls-cert=/etc/bigfleet/bootstrap-tls/tls.crt
- --bootstrap-tls-key=/etc/bigfleet/bootstrap-tls/tls.key
{{- end }}
{{- include "provider.flags" .Values.config }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "provider.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .Values.state.enabled }}
- {name: state, mountPath: /var/lib/bigfleet}
{{- end }}
{{- if or .Values.offerings.content .Values.baseUserData.content }}
- {name: config, mountPath: /etc/bigfleet/provider, readOnly: true}
{{- end }}
{{- if .Values.clusterKubeconfigs.secretName }}
- {name: clusters, mountPath: /etc/bigfleet/clusters, readOnly: true}
{{- end }}
{{- if .Values.tls.enabled }}
- {name: tls, mountPath: /etc/bigfleet/tls, readOnly: true}
{{- end }}
{{- if .Values.bootstrap.enabled }}
- {name: bootstrap-tls, mountPath: /etc/bigfleet/bootstrap-tls, readOnly: true}
{{- end }}
{{- range $number, $file := .Values.files }}
- {name: files-{{ $number }}, mountPath: {{ $file.mountPath | quote }}, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "provider.volumes" -}}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 64Mi}
{{- if .Values.state.enabled }}
- name: state
  persistentVolumeClaim: {claimName: {{ .Values.state.existingClaim | default (include "provider.fullname" .) }}}
{{- end }}
{{- if or .Values.offerings.content .Values.baseUserData.content }}
- name: config
  configMap: {name: {{ include "provider.fullname" . }}}
{{- end }}
{{- if .Values.clusterKubeconfigs.secretName }}
- name: clusters
  secret: {secretName: {{ .Values.clusterKubeconfigs.secretName }}, defaultMode: 0440}
{{- end }}
{{- if .Values.tls.enabled }}
- name: tls
  secret: {secretName: {{ .Values.tls.secretName }}, defaultMode: 0440}
{{- end }}
{{- if .Values.bootstrap.enabled }}
- name: bootstrap-tls
  secret: {secretName: {{ .Values.bootstrap.tls.secretName }}, defaultMode: 0440}
{{- end }}
{{- range $number, $file := .Values.files }}
- name: files-{{ $number }}
  secret: {secretName: {{ $file.secretName | quote }}, defaultMode: 0440}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
