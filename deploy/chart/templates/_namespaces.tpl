{{/*
The names of a value of Reloader's chart, which is a list or a text with commas, separated by commas.
*/}}
{{- define "keyturn.names" -}}
{{- if kindIs "string" . }}{{ nospace . }}{{ else }}{{ join "," (. | default list) }}{{ end -}}
{{- end }}

{{/*
Fails with one line about namespaces that the programs would not start with. Values that do not count, as in Reloader, are not looked at.
*/}}
{{- define "keyturn.checkNamespaces" -}}
{{- $global := ne (toString (get .Values.reloader "watchGlobally")) "false" -}}
{{- $field := ternary "ignoreNamespaces" "namespaces" $global -}}
{{- range splitList "," (include "keyturn.names" (get .Values.reloader $field)) | compact -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" .) }}
{{- $other := ternary "; without it Keyturn does as Reloader, which takes no patterns" "" $global }}
{{- fail (printf "reloader.%s: has %q, want names of namespaces, separated by commas%s" $field . $other) }}
{{- end -}}
{{- end -}}
{{- if or .Values.namespaces (not $global) -}}
{{- $others := dict "namespaceSelector" .Values.namespaceSelector -}}
{{- $_ := set $others "env.KEYTURN_IGNORE_NAMESPACES" (get (.Values.env | default dict) "KEYTURN_IGNORE_NAMESPACES") -}}
{{- if $global -}}
{{- range list "ignoreNamespaces" "namespaceSelector" }}{{ $_ := set $others (printf "reloader.%s" .) (get $.Values.reloader .) }}{{ end -}}
{{- end -}}
{{- range $name, $value := $others -}}
{{- if $value }}
{{- fail (printf "%s: is set beside the names of all namespaces to watch (namespaces, or reloader.watchGlobally: false), want one of the two" $name) }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/*
The name of an object that is not in the namespace of the release: with that namespace, so that releases in several have objects of their own. No
name of a namespace has a dot, so none is taken for the end of another name. Arguments: the chart's root and the name.
*/}}
{{- define "keyturn.nameOutside" -}}
{{- $namespace := (index . 0).Release.Namespace -}}
{{- index . 1 }}{{ if ne $namespace "keyturn-system" }}.{{ $namespace }}{{ end -}}
{{- end }}
