{{/*
"true" if Keyturn takes Reloader's place and does as it does, or "false".
*/}}
{{- define "keyturn.reloaderMode" -}}
{{- or .Values.reloaderMode (not (empty .Values.reloader)) -}}
{{- end }}

{{/*
The variables of both programs in that mode, whose defaults are Reloader's.
*/}}
{{- define "keyturn.reloaderEnv" -}}
{{- if eq (include "keyturn.reloaderMode" .) "true" -}}
{{- $strategy := get .Values.reloader "reloadStrategy" | default "default" -}}
{{- $settings := list "on" "metrics" (printf "strategy=%s" (ternary "env-vars" $strategy (eq $strategy "default"))) -}}
{{- $names := include "keyturn.reloaderAnnotations" . | fromYaml -}}
{{- $keys := list -}}
{{- range $name, $key := get .Values.reloader "custom_annotations" | default dict -}}
{{- with $key }}{{ $keys = append $keys (printf "%s=%s" (get (get $names $name) "flag") .) }}{{ end -}}
{{- end }}
KEYTURN_RELOADER: {{ concat $settings (sortAlpha $keys) | join "," | quote }}
KEYTURN_ROLL_ON_CREATE: {{ ternary "always" "never" (eq (toString (get .Values.reloader "reloadOnCreate")) "true") }}
{{- if eq (toString (get .Values.reloader "reloadOnDelete")) "true" }}
KEYTURN_ROLL_ON_DELETE: "true"
{{- end }}
{{- end -}}
{{- end }}

{{/*
The values below "reloader.custom_annotations": Reloader's flag without its suffix, the default, and its name in the options that Reloader
publishes.
*/}}
{{- define "keyturn.reloaderAnnotations" -}}
auto: {flag: auto-annotation, key: reloader.stakater.com/auto, option: reloaderAutoAnnotation}
configmap: {flag: configmap-annotation, key: configmap.reloader.stakater.com/reload, option: configmapUpdateOnChangeAnnotation}
configmap_auto: {flag: configmap-auto-annotation, key: configmap.reloader.stakater.com/auto, option: configmapReloaderAutoAnnotation}
secret: {flag: secret-annotation, key: secret.reloader.stakater.com/reload, option: secretUpdateOnChangeAnnotation}
secret_auto: {flag: secret-auto-annotation, key: secret.reloader.stakater.com/auto, option: secretReloaderAutoAnnotation}
search: {flag: auto-search-annotation, key: reloader.stakater.com/search, option: autoSearchAnnotation}
match: {flag: search-match-annotation, key: reloader.stakater.com/match, option: searchMatchAnnotation}
ignore: {flag: ignore-annotation, key: reloader.stakater.com/ignore, option: ignoreResourceAnnotation}
pausePeriod: {flag: pause-deployment-annotation, key: deployment.reloader.stakater.com/pause-period, option: pauseDeploymentAnnotation}
pauseTime: {flag: pause-deployment-time-annotation, key: deployment.reloader.stakater.com/paused-at, option: pauseDeploymentTimeAnnotation}
{{- end }}
