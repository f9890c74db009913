{{/*
Fails with one line about targets or projections that the programs would not start with: each has a policy and a permission of its own.
*/}}
{{- define "keyturn.checkKinds" -}}
{{- $names := dict }}{{ $resources := dict -}}
{{- range $i, $target := .Values.targets -}}
{{- $name := include "keyturn.targetName" $target -}}
{{- if hasKey $names $name }}
{{- fail (printf "targets[%d].name: %q is the name of targets[%d], too, want another name for one of them" $i $name (get $names $name)) }}
{{- end -}}
{{- $resource := printf "%s.%s" $target.resource (splitList "/" $target.apiVersion | first) -}}
{{- if hasKey $resources $resource }}
{{- fail (printf "targets[%d].resource: %s is that of targets[%d], too, want it once" $i $resource (get $resources $resource)) }}
{{- end -}}
{{- $_ := set $names $name $i -}}
{{- $_ := set $resources $resource $i -}}
{{- end -}}
{{- $kinds := dict -}}
{{- range $i, $projection := ternary .Values.projector.projections list .Values.projector.enabled -}}
{{- $kind := lower $projection.kind -}}
{{- if hasKey $kinds $kind }}
{{- fail (printf "projector.projections[%d].kind: %q is that of projections[%d], too, want each kind once" $i $projection.kind (get $kinds $kind)) }}
{{- end -}}
{{- $_ := set $kinds $kind $i -}}
{{- end -}}
{{- end }}

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
