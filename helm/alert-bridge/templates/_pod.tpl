{{/*
The template of a pod. Takes a dict: root (the chart's own context), role, resources, several (whether there may be more than
one) and labels (beside those of every pod, for a Deployment of its own).
*/}}
{{- define "alert-bridge.pod" -}}
{{- $pod := . }}
{{- with .root -}}
metadata:
  {{- if or .Values.podAnnotations (not .Values.existingConfigMap) }}
  annotations:
    {{- if not .Values.existingConfigMap }}
    checksum/config: {{ include "alert-bridge.config" . | sha256sum }}
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  labels:
    {{- include "alert-bridge.labels" . | nindent 4 }}
    {{- with $pod.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "alert-bridge.serviceAccountName" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "alert-bridge.gracePeriod" . }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  containers:
    - name: alert-bridge
      image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [run, --config, /etc/alert-bridge/config/config.yaml, --role, {{ $pod.role }}]
      {{- with .Values.extraEnv }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: {{ include "alert-bridge.port" . }}
      livenessProbe:
        httpGet:
          path: /-/healthy
          port: http
        {{- toYaml .Values.livenessProbe | nindent 8 }}
      readinessProbe:
        httpGet:
          path: /-/ready
          port: http
        {{- toYaml .Values.readinessProbe | nindent 8 }}
      startupProbe:
        httpGet:
          path: /-/healthy
          port: http
        {{- toYaml .Values.startupProbe | nindent 8 }}
      resources:
        {{- toYaml $pod.resources | nindent 8 }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        - name: config
          mountPath: /etc/alert-bridge/config
          readOnly: true
        - name: data
          mountPath: {{ .Values.config.dataDir | default "/var/lib/alert-bridge" }}
        {{- range $index, $name := include "alert-bridge.secrets" . | fromJsonArray }}
        - name: secret-{{ $index }}
          mountPath: {{ include "alert-bridge.secretsPath" $ }}/{{ $name }}
          readOnly: true
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ .Values.existingConfigMap | default (include "alert-bridge.fullname" .) }}
    - name: data
      emptyDir:
        sizeLimit: {{ .Values.dataVolume.sizeLimit | quote }}
    {{- range $index, $name := include "alert-bridge.secrets" . | fromJsonArray }}
    - name: secret-{{ $index }}
      secret:
        secretName: {{ $name }}
        defaultMode: 0440
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if $pod.several }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "alert-bridge.selectorLabels" . | nindent 10 }}
          {{- with $pod.labels }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
  {{- end }}
{{- end }}
{{- end }}
