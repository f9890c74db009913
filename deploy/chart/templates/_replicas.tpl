{{/*
"true" if the NATS servers beside three actuators form a cluster, or empty.
*/}}
{{- define "keyturn.replicated" -}}
{{- if gt (int .Values.actuator.replicas) 1 -}}
{{- if .Values.nats.url }}
{{- fail "actuator.replicas: is for the NATS that the actuator embeds, want nats.url empty; with it there are two actuators anyway" }}
{{- end -}}
{{- if .Values.nats.leaf.hub }}
{{- fail "actuator.replicas: a leaf node of a hub has one actuator, want nats.leaf.hub empty" }}
{{- end -}}
true
{{- end -}}
{{- end }}

{{/*
What a disruption budget allows: Reloader's, if its values have one. That is for replicas of which one is enough, so it is not for three actuators, whose
majority the stream needs. Arguments: the chart's root and the program's name.
*/}}
{{- define "keyturn.disruption" -}}
{{- $root := index . 0 -}}
{{- $theirs := get $root.Values.reloader "podDisruptionBudget" | default dict -}}
{{- $majority := and (eq (index . 1) "actuator") (eq (include "keyturn.replicated" $root) "true") -}}
{{- if or $majority (ne (toString (get $theirs "enabled")) "true") }}{{ $theirs = dict }}{{ end -}}
{{- if and $theirs.minAvailable (not $theirs.maxUnavailable) -}}
minAvailable: {{ $theirs.minAvailable }}
{{- else -}}
maxUnavailable: {{ $theirs.maxUnavailable | default 1 }}
{{- end -}}
{{- end }}

{{/*
The number of watchers.
*/}}
{{- define "keyturn.watchers" -}}
{{- if kindIs "invalid" .Values.watcher.replicas -}}
{{ ternary 2 1 (eq (include "keyturn.replicated" .) "true") }}
{{- else -}}
{{ .Values.watcher.replicas }}
{{- end -}}
{{- end }}
