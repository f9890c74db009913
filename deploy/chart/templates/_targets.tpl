{{/*
The name of a target, its kind in lower case by default.
*/}}
{{- define "keyturn.targetName" -}}
{{- .name | default (lower .kind) -}}
{{- end }}

{{/*
An expression that is true for an Event about an object of a target.
*/}}
{{- define "keyturn.targetEvents" -}}
object.involvedObject.kind in ['{{ .kind }}'] && object.involvedObject.?apiVersion.orValue('').startsWith('{{ splitList "/" .apiVersion | first }}/')
{{- end }}

{{/*
What a roll writes on an object of a target, as expressions: the names on the way to it, what is written there, and what is on the object
besides the record.
*/}}
{{- define "keyturn.targetWrite" -}}
{{- $roll := list "keyturn.dev/revision" "keyturn.dev/cause" "keyturn.dev/traceparent" -}}
{{- $path := list -}}
{{- $writes := list -}}
{{- $besides := list -}}
{{- if .trigger.annotations -}}
{{- $path = splitList "." .trigger.annotations -}}
{{- $writes = $roll -}}
{{- else -}}
{{- $field := .trigger.field | default "" -}}
{{- $besides = $roll -}}
{{- if eq (.trigger.value | default "") "time" }}{{ $besides = append $besides "keyturn.dev/triggered-at" }}{{ end -}}
{{- if hasPrefix "metadata.annotations['" $field -}}
{{- $besides = append $besides (trimPrefix "metadata.annotations['" $field | trimSuffix "']") -}}
{{- else if $field -}}
{{- $path = splitList "." $field | initial -}}
{{- $writes = splitList "." $field | last | list -}}
{{- end -}}
{{- end -}}
path: {{ include "keyturn.celList" $path | quote }}
writes: {{ include "keyturn.celList" $writes | quote }}
besides: {{ include "keyturn.celList" $besides | quote }}
{{- end }}

{{- define "keyturn.celList" -}}
[{{ range $i, $name := . }}{{ if $i }}, {{ end }}'{{ $name }}'{{ end }}]
{{- end }}
