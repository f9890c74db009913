{{/*
The name of an object, which begins with fullnameOverride. Arguments: the chart's root and what the object is of, such as "watcher", or "keyturn" for
the installation itself.
*/}}
{{- define "keyturn.named" -}}
{{- $full := (index . 0).Values.fullnameOverride | default "keyturn" -}}
{{- if eq (index . 1) "keyturn" }}{{ $full }}{{ else }}{{ $full }}-{{ index . 1 }}{{ end -}}
{{- end }}

{{/*
What the label app.kubernetes.io/name of a program is, which no value changes: selectors have it, and people find the program by it.
*/}}
{{- define "keyturn.label" -}}
{{- if eq . "keyturn" }}keyturn{{ else }}keyturn-{{ . }}{{ end -}}
{{- end }}

{{/*
"true" with one pod, or empty. Fails with one line about a value that is for two.
*/}}
{{- define "keyturn.single" -}}
{{- if eq .Values.mode "single" -}}
{{- $others := dict "nats.url" .Values.nats.url "nats.leaf.hub" .Values.nats.leaf.hub "openbaoAudit.enabled" .Values.openbaoAudit.enabled -}}
{{- $_ := set $others "projector.enabled" .Values.projector.enabled -}}
{{- $_ := set $others "actuator.replicas" (gt (int .Values.actuator.replicas) 1) -}}
{{- $_ := set $others "watcher.replicas" (gt (int .Values.watcher.replicas) 1) -}}
{{- $_ := set $others "nats.certificate" (ne .Values.nats.certificate "job") -}}
{{- range $name, $value := $others -}}
{{- if $value }}
{{- fail (printf "%s: is set with mode: single, in which no other program is on its NATS; want mode: split" $name) }}
{{- end -}}
{{- end -}}
true
{{- end -}}
{{- end }}

{{/*
The programs that read Secrets and write workloads, as JSON: one, or two.
*/}}
{{- define "keyturn.programs" -}}
{{- ternary (list "keyturn") (list "watcher" "actuator") (eq (include "keyturn.single" .) "true") | toJson -}}
{{- end }}

{{/*
The program that writes workloads.
*/}}
{{- define "keyturn.writer" -}}
{{- include "keyturn.programs" . | fromJsonArray | last -}}
{{- end }}

{{/*
"true" if there are network policies. One pod has none.
*/}}
{{- define "keyturn.networkPolicies" -}}
{{- and .Values.networkPolicy.enabled (ne (include "keyturn.single" .) "true") -}}
{{- end }}

{{/*
The ports of the servers of nats.url, for a network policy.
*/}}
{{- define "keyturn.natsPorts" -}}
{{- $ports := list -}}
{{- range splitList "," .Values.nats.url -}}
{{- $usual := get (dict "ws" "80" "wss" "443") (regexFind "^[a-z]+" .) | default "4222" -}}
{{- $ports = append $ports (regexFind "[0-9]+$" (regexFind ":[0-9]+$" (trimSuffix "/" .)) | default $usual) -}}
{{- end -}}
{{- range $i, $port := uniq $ports }}
- port: {{ $port }}
{{- end }}
{{- end }}
