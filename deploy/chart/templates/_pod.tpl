{{/*
What both programs' pods have in common. Arguments: the chart's root and the program's name.
*/}}
{{- define "keyturn.podMetadata" -}}
{{- $root := index . 0 }}{{ $program := index . 1 }}{{ $values := include "keyturn.podValues" . | fromYaml -}}
labels:
  {{- include "keyturn.podLabels" (list $root $program $values.podLabels) | nindent 2 }}
annotations:
  # The ConfigMaps keep their names, so this restarts the pods when their content changes, but not for another label alone.
  checksum/config: {{ include "keyturn.configMapData" $root | sha256sum }}
  {{- if and (has $program (list "actuator" "keyturn")) (include "keyturn.reloaderSecret" $root | fromYaml) }}
  # So do upgrades, because a checksum would tell what the Secret keyturn-reloader holds. Where Helm only renders, as in Argo CD, it is always 1.
  helm.sh/revision: {{ $root.Release.Revision | quote }}
  {{- end }}
  {{- with $values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/*
The content of the ConfigMaps, by their names.
*/}}
{{- define "keyturn.configMapData" -}}
{{- $all := dict -}}
{{- range regexSplit "(?m)^---$" (include (print .Template.BasePath "/configmaps.yaml") .) -1 -}}
{{- $configMap := fromYaml . -}}
{{- $_ := set $all $configMap.metadata.name $configMap.data -}}
{{- end -}}
{{- toYaml $all -}}
{{- end }}

{{/*
The labels and annotations of a program's Deployment or StatefulSet.
*/}}
{{- define "keyturn.workloadMetadata" -}}
{{- $program := index . 1 }}{{ $values := include "keyturn.podValues" . | fromYaml -}}
{{- include "keyturn.labels" (list (index . 0) $program $values.labels) }}
{{- with $values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "keyturn.podSpec" -}}
{{- $root := index . 0 }}{{ $program := index . 1 }}{{ $values := include "keyturn.podValues" . | fromYaml -}}
serviceAccountName: {{ include "keyturn.serviceAccountName" . }}
{{- if eq $program "actuator" }}
automountServiceAccountToken: false # Of its containers the actuator alone has it, in the volume api-access.
{{- else }}
automountServiceAccountToken: {{ and (ne $program "audit") (ne (toString (get (get $root.Values.reloader "deployment" | default dict) "automountServiceAccountToken")) "false") }}
{{- end }}
# Otherwise Kubernetes sets KEYTURN_NATS_PORT and the like for the Service, which look like our own variables.
enableServiceLinks: false
# Enough to finish the patches and messages in flight, and then to close NATS.
terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds | default 30 }}
{{- with include "keyturn.priorityClassName" . }}
priorityClassName: {{ . }}
{{- end }}
{{- $selector := dict "matchLabels" (dict "app.kubernetes.io/name" (include "keyturn.label" $program)) }}
{{- if or $values.topologySpreadConstraints (ne $program "keyturn") }}
topologySpreadConstraints:
  {{- range $values.topologySpreadConstraints }}
  - {{- merge (dict) . (dict "labelSelector" $selector) | toYaml | nindent 4 }}
  {{- else }}
  # Spread replicas over nodes. Two of three copies of the stream on one node would be lost with it, and with them the majority.
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: {{ ternary "DoNotSchedule" "ScheduleAnyway" (and (eq $program "actuator") (eq (include "keyturn.replicated" $root) "true")) }}
    labelSelector:
      {{- toYaml $selector | nindent 6 }}
  {{- end }}
{{- end }}
{{- if kindIs "bool" $values.hostUsers }}
hostUsers: {{ $values.hostUsers }}
{{- end }}
{{- $_ := set $values "imagePullSecrets" (include "keyturn.imagePullSecrets" $root | fromYamlArray) }}
{{- range $field := list "affinity" "dnsConfig" "dnsPolicy" "hostAliases" "imagePullSecrets" "nodeSelector" "runtimeClassName" "schedulerName" "tolerations" }}
{{- with get $values $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/*
These name the pod in spans and metrics, and the actuator in its Lease.
*/}}
{{- define "keyturn.podEnv" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: POD_UID
  valueFrom:
    fieldRef:
      fieldPath: metadata.uid
{{- end }}

{{/*
The default of image.repository. `make release` writes its own, here and in values.yaml.
*/}}
{{- define "keyturn.repository" -}}
ghcr.io/keyturn/keyturn
{{- end }}

{{/*
The values of the image. That of Reloader is a default of its values, which nobody chose.
*/}}
{{- define "keyturn.imageValues" -}}
{{- $image := .Values.image -}}
{{- if eq $image.repository "ghcr.io/stakater/reloader" }}{{ $image = dict "repository" (include "keyturn.repository" .) "pullPolicy" $image.pullPolicy }}{{ end -}}
{{- toYaml $image -}}
{{- end }}

{{- define "keyturn.image" -}}
{{- $image := include "keyturn.imageValues" . | fromYaml }}{{ $repository := $image.repository -}}
{{- with .Values.global.imageRegistry -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $repository "") -}}
{{- end -}}
image: {{ $repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- with $image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end }}

{{/*
The times and thresholds may be Reloader's.
*/}}
{{- define "keyturn.probes" -}}
{{- $theirs := get .Values.reloader "deployment" | default dict -}}
livenessProbe:
  httpGet:
    path: /livez
    port: healthz
  {{- merge (dict) (get $theirs "livenessProbe" | default dict) (dict "periodSeconds" 10 "failureThreshold" 6) | toYaml | nindent 2 }}
readinessProbe:
  httpGet:
    path: /readyz
    port: healthz
  {{- merge (dict) (get $theirs "readinessProbe" | default dict) (dict "periodSeconds" 5) | toYaml | nindent 2 }}
{{- end }}

{{/*
The values, and those of Reloader, add to it, and make nothing less strict.
*/}}
{{- define "keyturn.containerSecurityContext" -}}
{{- $context := get (get .Values.reloader "deployment" | default dict) "containerSecurityContext" | default dict | deepCopy -}}
{{- $context = merge $context (deepCopy .Values.securityContext) -}}
{{- $capabilities := get $context "capabilities" | default dict -}}
{{- $_ := set $capabilities "drop" (list "ALL") -}}
{{- $_ := set $context "capabilities" $capabilities -}}
{{- $_ := set $context "allowPrivilegeEscalation" false -}}
{{- $_ := set $context "readOnlyRootFilesystem" true -}}
securityContext:
  {{- toYaml $context | nindent 2 }}
{{- end }}

{{/*
The number of revisions of a Deployment or StatefulSet to keep, if Reloader's values say one.
*/}}
{{- define "keyturn.revisionHistoryLimit" -}}
{{- $limit := get (get .Values.reloader "deployment" | default dict) "revisionHistoryLimit" -}}
{{- if not (has (toString $limit) (list "" "<nil>")) }}
revisionHistoryLimit: {{ $limit }}
{{- end -}}
{{- end }}

{{/*
The strategy of a Deployment. Arguments: the chart's root and the program's name.
*/}}
{{- define "keyturn.strategy" -}}
{{- $usual := ternary (dict "type" "Recreate") dict (eq (index . 1) "keyturn") -}}
{{- with (index . 0).Values.strategy | default $usual }}
strategy:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end }}
