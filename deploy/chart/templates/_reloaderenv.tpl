{{/*
Reloader's environment: what is secret, from a Secret of the chart; the whole of it for the actuator, which sends alerts; for the watcher only
what tells nothing, such as the address of a proxy. Arguments: the chart's root and the program's name.
*/}}
{{- define "keyturn.reloaderPodEnv" -}}
{{- $root := index . 0 }}{{ $alerts := eq (index . 1) "actuator" -}}
{{- $env := get (get $root.Values.reloader "deployment" | default dict) "env" | default dict -}}
{{- range $name, $value := get $env "open" | default dict -}}
{{- if and $value (not (hasPrefix "ALERT_" $name)) }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end -}}
{{- end -}}
{{- range $name, $path := get $env "field" | default dict -}}
{{- if and $path (not (has $name (list "POD_NAME" "POD_NAMESPACE" "POD_UID"))) }}
- name: {{ $name }}
  valueFrom:
    fieldRef:
      fieldPath: {{ $path }}
{{- end -}}
{{- end -}}
{{- if $alerts -}}
{{- range $name := keys (include "keyturn.reloaderSecret" $root | fromYaml) | sortAlpha }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: keyturn-reloader
      key: {{ $name }}
{{- end -}}
{{- range $secret, $names := get $env "existing" | default dict -}}
{{- range $name, $key := $names | default dict }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: {{ $key }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/*
The variables in the chart's Secret, by name. An address is a password, also where Reloader's values have it in the open.
*/}}
{{- define "keyturn.reloaderSecret" -}}
{{- $env := get (get .Values.reloader "deployment" | default dict) "env" | default dict -}}
{{- $secret := dict -}}
{{- range $name, $value := get $env "open" | default dict -}}
{{- if and $value (hasPrefix "ALERT_" $name) }}{{ $_ := set $secret $name (toString $value) }}{{ end -}}
{{- end -}}
{{- range $name, $value := get $env "secret" | default dict -}}
{{- if $value }}{{ $_ := set $secret $name (toString $value) }}{{ end -}}
{{- end -}}
{{- with get .Values.reloader "webhookUrl" -}}
{{- if eq (toString (get $.Values.env "KEYTURN_DRY_RUN")) "true" }}{{ fail "reloader.webhookUrl: is set together with env.KEYTURN_DRY_RUN, want it without: nothing is rolled" }}{{ end -}}
{{- if $.Values.secretStores.enabled }}{{ fail "reloader.webhookUrl: is set together with secretStores.enabled, want it without: nothing is synced" }}{{ end -}}
{{- $_ := set $secret "KEYTURN_WEBHOOK_URL" . -}}
{{- end -}}
{{- toYaml $secret -}}
{{- end }}

{{/*
"true" if the actuator calls addresses that Reloader would reach on any port.
*/}}
{{- define "keyturn.reloaderCalls" -}}
{{- $env := get (get .Values.reloader "deployment" | default dict) "env" | default dict -}}
{{- $restricts := eq (toString (get (get .Values.reloader "netpol" | default dict) "enabled")) "true" -}}
{{- and (not $restricts) (or (not (empty (include "keyturn.reloaderSecret" . | fromYaml))) (not (empty (get $env "existing")))) -}}
{{- end }}
