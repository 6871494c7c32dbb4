{{- define "alert-bridge.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimAll "-_." }}
{{- end }}

{{- define "alert-bridge.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "alert-bridge.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "alert-bridge.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "alert-bridge.selectorLabels" -}}
app.kubernetes.io/name: {{ include "alert-bridge.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "alert-bridge.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "alert-bridge.selectorLabels" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | regexFind "^[-\\w.]*" | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Takes a list: the chart's own context, and maps of labels for one object, of which the last wins. */}}
{{- define "alert-bridge.labelsWith" -}}
{{- $labels := include "alert-bridge.labels" (first .) | fromYaml }}
{{- range rest . }}
{{- $_ := mergeOverwrite $labels (. | default dict) }}
{{- end }}
{{- toYaml $labels }}
{{- end }}

{{/* Takes a dict: probe (as the values have it) and path, which is asked unless the probe has a handler of its own. */}}
{{- define "alert-bridge.probe" -}}
{{- $handler := pick .probe "exec" "grpc" "httpGet" "tcpSocket" }}
{{- toYaml (merge (dict) .probe (ternary (dict "httpGet" (dict "path" .path "port" "http")) (dict) (empty $handler))) }}
{{- end }}

{{/* The Deployment of senders, where they are apart. */}}
{{- define "alert-bridge.sendersName" -}}
{{- printf "%s-senders" (include "alert-bridge.fullname" . | trunc 55 | trimSuffix "-") }}
{{- end }}

{{- define "alert-bridge.testName" -}}
{{- printf "%s-test" (include "alert-bridge.fullname" . | trunc 58 | trimSuffix "-") }}
{{- end }}

{{/* Of the pod of `helm test`, which the Service must not take for a bridge: another name. */}}
{{- define "alert-bridge.testLabels" -}}
app.kubernetes.io/name: {{ printf "%s-test" (include "alert-bridge.name" . | trunc 58 | trimAll "-_.") }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/*
The jobs that senders could take now, by the metrics of the bridge: every replica says the same of a queue, so the largest
counts. What is delayed or paused needs no further sender, nor does what waits for a sink that is at fault.
*/}}
{{- define "alert-bridge.waitingQuery" -}}
{{- $of := printf `namespace="%s",service="%s"` .Release.Namespace (include "alert-bridge.fullname" .) }}
{{- printf `sum(max by (sink, state) (alert_bridge_queue_jobs{%s,state=~"waiting|active"}) unless on (sink) max by (sink) (alert_bridge_circuit_open{%s}) == 1)` $of $of }}
{{- end }}

{{- define "alert-bridge.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "alert-bridge.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "alert-bridge.dataDir" -}}{{ .Values.config.dataDir | default "/var/lib/alert-bridge" }}{{- end }}

{{- define "alert-bridge.secretsPath" -}}/etc/alert-bridge/secrets{{- end }}

{{/* The Secrets to mount: those named, and those that the chart itself points at. */}}
{{- define "alert-bridge.secrets" -}}
{{- concat (.Values.existingSecrets | default list) (list .Values.redis.existingSecret.name .Values.adminToken.existingSecret.name) | compact | uniq | toJson }}
{{- end }}

{{/* null is Helm's word for what an earlier file of values has and this release does not. */}}
{{- define "alert-bridge.dropNulls" -}}
{{- range $key, $each := . }}
{{- if kindIs "invalid" $each }}
{{- $_ := unset $ $key }}
{{- else if kindIs "map" $each }}
{{- include "alert-bridge.dropNulls" $each }}
{{- end }}
{{- end }}
{{- end }}

{{/* The config as YAML: the values' own, with the files of the two Secrets that the chart knows. */}}
{{- define "alert-bridge.config" -}}
{{- $config := deepCopy .Values.config }}
{{- $path := include "alert-bridge.secretsPath" . }}
{{- with .Values.redis.existingSecret }}
{{- if .name }}
{{- $_ := set $config "redis" (mergeOverwrite (dict) ($config.redis | default dict) (dict "urlFile" (printf "%s/%s/%s" $path .name .key))) }}
{{- end }}
{{- end }}
{{- with .Values.adminToken.existingSecret }}
{{- if .name }}
{{- $_ := set $config "http" (mergeOverwrite (dict) ($config.http | default dict) (dict "adminTokenFile" (printf "%s/%s/%s" $path .name .key))) }}
{{- end }}
{{- end }}
{{- include "alert-bridge.dropNulls" $config }}
{{- $hosts := include "alert-bridge.serviceNames" . | fromJsonArray }}
{{- $http := $config.http | default dict }}
{{- $_ := set $config "http" (mergeOverwrite (dict) $http (dict "hosts" (concat ($http.hosts | default list) $hosts | uniq))) }}
{{- toYaml $config }}
{{- end }}

{{/* The names of the Service: the bridge answers to no other names than loopback ones, those of http.hosts, and IP addresses. */}}
{{- define "alert-bridge.serviceNames" -}}
{{- $short := include "alert-bridge.fullname" . }}
{{- $full := printf "%s.%s" $short .Release.Namespace }}
{{- list $short $full (printf "%s.svc" $full) (printf "%s.svc.%s" $full .Values.clusterDomain) | toJson }}
{{- end }}

{{/*
The ports that the bridge may go to, as JSON: egressPorts, and those of the addresses in the config. What comes from a Secret or
a variable cannot be read here; a port after a variable can.
*/}}
{{- define "alert-bridge.egressPorts" -}}
{{- $usual := dict "http" 80 "https" 443 "redis" 6379 "rediss" 6379 "smtp" 587 "smtps" 465 }}
{{- $ports := list }}
{{- range .Values.networkPolicy.egressPorts }}
{{- $ports = append $ports (int .) }}
{{- end }}
{{- $config := pick .Values.config "sources" "sinks" "redis" "traces" | toJson }}
{{- range regexFindAll `"(?i:https?|rediss?|smtps?)://([^/"?#]*@)?(([^:/"?#$]|\$\{[^}"]*\})+:[0-9]+|\[[^]"]*\]|[^:/"?#$]+)(:[0-9]+)?` $config -1 }}
{{- $port := regexFind ":[0-9]+$" . | regexFind "[1-9][0-9]*" }}
{{- $ports = append $ports (int (default (index $usual (lower . | regexFind "[a-z]+")) $port)) }}
{{- end }}
{{- range dig "redis" "sentinels" (list) .Values.config }}
{{- $ports = append $ports (regexFind ":[0-9]+$" . | trimPrefix ":" | default "26379" | int) }}
{{- end }}
{{- uniq $ports | toJson }}
{{- end }}

{{/* The port that the bridge listens on. */}}
{{- define "alert-bridge.port" -}}
{{- if .Values.existingConfigMap }}8080{{ else }}
{{- regexFind "[0-9]+$" (default "0.0.0.0:8080" (dig "http" "listen" "" .Values.config)) }}
{{- end }}
{{- end }}

{{/*
The seconds that a pod needs to end: a stop waits for the sends that run, each to the end of its sink's timeout, and
another 30 s record them and close what is open. What cannot be read here (a variable, a ConfigMap of your own) counts
as 5m, the longest timeout that a sink may have; a sink without one has 10s.
*/}}
{{- define "alert-bridge.stopSeconds" -}}
{{- $longest := ternary 300.0 10.0 (not (empty .Values.existingConfigMap)) }}
{{- range .Values.config.sinks }}
{{- if kindIs "map" . }}
{{- $text := .timeout | default "10s" | toString }}
{{- $seconds := 300.0 }}
{{- if regexMatch "^[0-9]+([.][0-9]+)?(ms|s|m)$" $text }}
{{- $unit := dict "ms" 0.001 "s" 1.0 "m" 60.0 }}
{{- $seconds = mulf (regexFind "^[0-9.]+" $text | float64) (index $unit (regexFind "[a-z]+$" $text)) }}
{{- end }}
{{- $longest = maxf $longest $seconds }}
{{- end }}
{{- end }}
{{- add 30 (ceil $longest | int) }}
{{- end }}

{{- define "alert-bridge.gracePeriod" -}}
{{- .Values.terminationGracePeriodSeconds | default (include "alert-bridge.stopSeconds" .) }}
{{- end }}

{{/* What cannot work is refused here, before a pod fails with it. */}}
{{- define "alert-bridge.check" -}}
{{- $name := include "alert-bridge.fullname" . }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}
{{- fail (printf "the objects would be named %q, which Kubernetes refuses for a Service: set fullnameOverride to a-z, 0-9 and -, with a letter first" $name) }}
{{- end }}
{{- $needed := include "alert-bridge.stopSeconds" . | int }}
{{- if lt (include "alert-bridge.gracePeriod" . | int) $needed }}
{{- fail (printf "terminationGracePeriodSeconds is %v: sends that run at a stop need up to %d s by the timeouts of config.sinks" .Values.terminationGracePeriodSeconds $needed) }}
{{- end }}
{{- if and .Values.senders.enabled (ne (.Values.role | default "all") "all") }}
{{- fail (printf "role is %s, and with senders.enabled the bridge's own pods poll: leave role out" .Values.role) }}
{{- end }}
{{- if and .Values.senders.enabled (hasKey (merge (dict) (.Values.podLabels | default dict) (.Values.commonLabels | default dict)) "app.kubernetes.io/component") }}
{{- fail "podLabels and commonLabels may not set app.kubernetes.io/component with senders.enabled: by it senders are told apart" }}
{{- end }}
{{- $volumes := list "config" "data" }}
{{- $paths := list "/etc/alert-bridge/config" }}
{{- range $index, $name := include "alert-bridge.secrets" . | fromJsonArray }}
{{- $volumes = append $volumes (printf "secret-%d" $index) }}
{{- $paths = append $paths (printf "%s/%s" (include "alert-bridge.secretsPath" $) $name) }}
{{- end }}
{{- $dataDir := include "alert-bridge.dataDir" . | clean }}
{{- if has $dataDir $paths }}
{{- fail (printf "config.dataDir is %s, where the chart mounts something else" $dataDir) }}
{{- end }}
{{- $paths = append $paths $dataDir }}
{{- range .Values.extraVolumes }}
{{- if has .name $volumes }}
{{- fail (printf "extraVolumes: there is another volume named %s already" .name) }}
{{- end }}
{{- $volumes = append $volumes .name }}
{{- end }}
{{- range .Values.extraVolumeMounts }}
{{- if not (has .name $volumes) }}
{{- fail (printf "extraVolumeMounts: there is no volume named %s" .name) }}
{{- end }}
{{- if has (clean .mountPath) $paths }}
{{- fail (printf "extraVolumeMounts: something else is mounted at %s already" .mountPath) }}
{{- end }}
{{- $paths = append $paths (clean .mountPath) }}
{{- end }}
{{- with .Values.autoscaling }}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) }}
{{- fail (printf "autoscaling.minReplicas is %v, which is more than maxReplicas, %v" .minReplicas .maxReplicas) }}
{{- end }}
{{- if and .enabled (eq .kind "keda") (empty .prometheusAddress) }}
{{- fail "autoscaling.kind keda needs autoscaling.prometheusAddress" }}
{{- end }}
{{- end }}
{{- if not .Values.existingConfigMap }}
{{- $config := include "alert-bridge.config" . | fromYaml }}
{{- range $part := list "sources" "sinks" "routes" }}
{{- if empty (index $config $part) }}
{{- fail (printf "config.%s is empty: set config.sources, config.sinks and config.routes (or existingConfigMap)" $part) }}
{{- end }}
{{- end }}
{{- $redis := .Values.config.redis | default dict }}
{{- $named := or $redis.url $redis.urlFile $redis.sentinels $redis.cluster }}
{{- if and (not .Values.redis.existingSecret.name) (not $named) }}
{{- fail "no Redis is named: set redis.existingSecret.name, or url, urlFile, sentinels or cluster in config.redis (there is none in the image)" }}
{{- end }}
{{- if and .Values.redis.existingSecret.name $named }}
{{- fail "Redis is named twice: by redis.existingSecret.name and in config.redis" }}
{{- end }}
{{- if and .Values.adminToken.existingSecret.name (or (dig "http" "adminToken" "" .Values.config) (dig "http" "adminTokenFile" "" .Values.config)) }}
{{- fail "the admin token is named twice: by adminToken.existingSecret.name and in config.http" }}
{{- end }}
{{- $listen := dig "http" "listen" "" .Values.config | default "empty, which means 127.0.0.1:8080" }}
{{- if regexMatch "^(127\\.|localhost:|\\[::1\\]|empty)" $listen }}
{{- fail (printf "config.http.listen is %s: probes and the Service cannot reach it; 0.0.0.0:8080 would do" $listen) }}
{{- end }}
{{- $port := include "alert-bridge.port" . | int }}
{{- if or (lt $port 1) (gt $port 65535) }}
{{- fail (printf "config.http.listen is %s: a pod needs a port from 1 to 65535; 0.0.0.0:8080 would do" $listen) }}
{{- end }}
{{- end }}
{{- end }}
