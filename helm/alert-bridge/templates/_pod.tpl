{{/*
The template of a pod. Takes a dict: root (the chart's own context), role, resources, several (whether there may be more than
one) and labels (beside those of every pod, for a Deployment of its own).
*/}}
{{- define "alert-bridge.pod" -}}
{{- $pod := . }}
{{- with .root -}}
metadata:
  {{- $checksum := dict }}
  {{- if not .Values.existingConfigMap }}
  {{- $checksum = dict "checksum/config" (include "alert-bridge.config" . | sha256sum) }}
  {{- end }}
  {{- with mergeOverwrite (dict) (.Values.podAnnotations | default dict) $checksum }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  labels:
    {{- include "alert-bridge.labelsWith" (list . $pod.labels .Values.podLabels) | nindent 4 }}
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
      {{- with .Values.livenessProbe }}
      livenessProbe:
        {{- include "alert-bridge.probe" (dict "probe" . "path" "/-/healthy") | nindent 8 }}
      {{- end }}
      {{- with .Values.readinessProbe }}
      readinessProbe:
        {{- include "alert-bridge.probe" (dict "probe" . "path" "/-/ready") | nindent 8 }}
      {{- end }}
      {{- with .Values.startupProbe }}
      startupProbe:
        {{- include "alert-bridge.probe" (dict "probe" . "path" "/-/healthy") | nindent 8 }}
      {{- end }}
      resources:
        {{- toYaml $pod.resources | nindent 8 }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        - name: config
          mountPath: /etc/alert-bridge/config
          readOnly: true
        - name: data
          mountPath: {{ include "alert-bridge.dataDir" . }}
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
