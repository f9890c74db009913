{{/*
The effective settings: the chart's own values, merged with the converted values of Reloader's chart.
*/}}
{{- define "keyturn.settings" -}}
{{- $reloader := .Values.reloader -}}
{{- include "keyturn.checkReloader" . -}}
{{- include "keyturn.checkNamespaces" . -}}
{{- $isTrue := dict -}}
{{- range $name := list "autoReloadAll" "ignoreSecrets" "ignoreConfigMaps" "isArgoRollouts" "enableCSIIntegration" "ignoreCronJobs" "ignoreJobs" -}}
{{- $_ := set $isTrue $name (eq (toString (get $reloader $name)) "true") -}}
{{- end -}}
{{- $sources := .Values.sources -}}
{{- if $isTrue.ignoreSecrets }}{{ $sources = without $sources "secret" }}{{ end -}}
{{- if $isTrue.ignoreConfigMaps }}{{ $sources = without $sources "configmap" }}{{ end -}}
{{- if not $sources }}
{{- fail "reloader.ignoreSecrets, reloader.ignoreConfigMaps: nothing is left to watch, set at most one of them" }}
{{- end -}}
{{- $namespaces := .Values.namespaces -}}
{{- if eq (toString (get $reloader "watchGlobally")) "false" -}}
{{- $theirs := splitList "," (include "keyturn.names" (get $reloader "namespaces")) -}}
{{- $namespaces = concat $namespaces (list .Release.Namespace) $theirs | compact | uniq -}}
{{- end -}}
{{- $selectors := list .Values.namespaceSelector -}}
{{- $ignored := list -}}
{{- if ne (toString (get $reloader "watchGlobally")) "false" -}}
{{- $selectors = append $selectors (include "keyturn.reloaderSelector" (get $reloader "namespaceSelector")) -}}
{{- $ignored = splitList "," (include "keyturn.names" (get $reloader "ignoreNamespaces")) | compact | uniq -}}
{{- end -}}
{{- $selector := list .Values.selector (include "keyturn.reloaderSelector" (get $reloader "resourceLabelSelector")) | compact -}}
{{- $levels := dict "trace" "debug" "warning" "warn" "fatal" "error" "panic" "error" -}}
{{- $level := get $reloader "logLevel" | default .Values.logLevel | lower -}}
{{- $jobs := .Values.jobs.enabled -}}
{{- if kindIs "invalid" $jobs }}{{ $jobs = eq (include "keyturn.reloaderMode" .) "true" }}{{ end }}
rollAll: {{ or .Values.rollAll $isTrue.autoReloadAll }}
startCronJobs: {{ and $jobs (not $isTrue.ignoreCronJobs) }}
recreateJobs: {{ and $jobs (not $isTrue.ignoreJobs) }}
workloadKinds: {{ list "deployment" "statefulset" "daemonset" (ternary "" "cronjob" $isTrue.ignoreCronJobs) (ternary "rollout" "" (or .Values.argoRollouts.enabled $isTrue.isArgoRollouts)) | compact | toJson }}
secretProviderClasses: {{ or .Values.secretProviderClasses.enabled $isTrue.enableCSIIntegration }}
argoRollouts: {{ or .Values.argoRollouts.enabled $isTrue.isArgoRollouts }}
sources: {{ toJson $sources }}
namespaces: {{ toJson $namespaces }}
ignoreNamespaces: {{ toJson $ignored }}
namespaceSelector: {{ compact $selectors | join "," | quote }}
selector: {{ join "," $selector | quote }}
logFormat: {{ get $reloader "logFormat" | default .Values.logFormat }}
logLevel: {{ get $levels $level | default $level }}
{{- end }}

{{/*
A selector of Reloader's, which also has the forms key:value, and key:* for any value.
*/}}
{{- define "keyturn.reloaderSelector" -}}
{{- regexReplaceAll "=+\\s*[*]" (regexReplaceAll "\\s*:\\s*" (. | default "") "=") "" -}}
{{- end }}

{{/*
The variables of both programs.
*/}}
{{- define "keyturn.env" -}}
{{- $settings := include "keyturn.settings" . | fromYaml -}}
{{- $env := dict "KEYTURN_CLUSTER" .Values.cluster -}}
{{- if ne (include "keyturn.single" .) "true" -}}
{{- $_ := set $env "KEYTURN_NATS_URL" (.Values.nats.url | default (printf "nats://keyturn-nats.%s.svc:4222" .Release.Namespace)) -}}
{{- end -}}
{{- $sources := $settings.sources -}}
{{- if .Values.secretStores.enabled -}}
{{- $sources = concat $sources (list "externalsecret" "certificate") -}}
{{- $_ := set $env "KEYTURN_FORCE_SYNC" "true" -}}
{{- end -}}
{{- if $settings.secretProviderClasses }}{{ $sources = append $sources "secretproviderclass" }}{{ end -}}
{{- if ne (join "," $sources) "secret,configmap" }}{{ $_ := set $env "KEYTURN_SOURCES" (join "," $sources) }}{{ end -}}
{{- with $settings.namespaces }}{{ $_ := set $env "KEYTURN_NAMESPACES" (join "," .) }}{{ end -}}
{{- with $settings.ignoreNamespaces }}{{ $_ := set $env "KEYTURN_IGNORE_NAMESPACES" (join "," .) }}{{ end -}}
{{- with $settings.namespaceSelector }}{{ $_ := set $env "KEYTURN_NAMESPACE_SELECTOR" . }}{{ end -}}
{{- with $settings.selector }}{{ $_ := set $env "KEYTURN_SELECTOR" . }}{{ end -}}
{{- if $settings.rollAll }}{{ $_ := set $env "KEYTURN_ROLL_ALL" "true" }}{{ end -}}
{{- $workloads := join "," $settings.workloadKinds -}}
{{- if ne $workloads "deployment,statefulset,daemonset,cronjob" }}{{ $_ := set $env "KEYTURN_WORKLOAD_KINDS" $workloads }}{{ end -}}
{{- $jobs := list (ternary "start" "" $settings.startCronJobs) (ternary "recreate" "" $settings.recreateJobs) | compact -}}
{{- with $jobs }}{{ $_ := set $env "KEYTURN_JOBS" (join "," .) }}{{ end -}}
{{- if .Values.reloadInPlace.enabled }}{{ $_ := set $env "KEYTURN_RELOAD_IN_PLACE" "2m" }}{{ end -}}
{{- if ne $settings.logLevel "info" }}{{ $_ := set $env "KEYTURN_LOG_LEVEL" $settings.logLevel }}{{ end -}}
{{- if .Values.nats.leaf.hub -}}
{{- if .Values.nats.url }}
{{- fail "nats.leaf.hub: is for the NATS that the actuator embeds, want nats.url empty" }}
{{- end -}}
{{- $env = merge $env (dict "NATS_HUB" .Values.nats.leaf.hub "NATS_HUB_CA" .Values.nats.leaf.caFile) -}}
{{- end -}}
{{- if .Values.otlp.enabled }}{{ $_ := set $env "OTEL_EXPORTER_OTLP_ENDPOINT" .Values.otlp.endpoint }}{{ end -}}
{{- if .Values.storeAccess.grants }}{{ $_ := set $env "KEYTURN_STORE_ACCESS" "/etc/keyturn-store-access/grants.yaml" }}{{ end -}}
{{- if .Values.targets }}{{ $_ := set $env "KEYTURN_TARGETS_CONFIG" "/etc/keyturn-targets" }}{{ end -}}
{{- $env = merge $env (include "keyturn.reloaderEnv" . | fromYaml) -}}
{{- $elsewhere := dict "KEYTURN_CLUSTER" "cluster" "KEYTURN_NATS_URL" "nats.url" "KEYTURN_NAMESPACES" "namespaces" "KEYTURN_NAMESPACE_SELECTOR" "namespaceSelector" -}}
{{- $elsewhere = merge $elsewhere (dict "KEYTURN_SELECTOR" "selector" "KEYTURN_SOURCES" "sources" "KEYTURN_FORCE_SYNC" "secretStores.enabled" "KEYTURN_TARGETS_CONFIG" "targets") -}}
{{- $elsewhere = merge $elsewhere (dict "KEYTURN_ROLL_ALL" "rollAll" "KEYTURN_LOG_LEVEL" "logLevel" "KEYTURN_LOG_FORMAT" "logFormat") -}}
{{- $elsewhere = merge $elsewhere (dict "NATS_HUB" "nats.leaf.hub" "NATS_HUB_CA" "nats.leaf.caFile") -}}
{{- $elsewhere = merge $elsewhere (dict "KEYTURN_JOBS" "jobs.enabled") -}}
{{- if not .Values.reloadInPlace.enabled }}{{ $_ := set $elsewhere "KEYTURN_RELOAD_IN_PLACE" "reloadInPlace.enabled" }}{{ end -}}
{{- range $name, $value := .Values.env -}}
{{- if regexMatch "^((BAO|VAULT)_TOKEN|OTEL_EXPORTER_OTLP(_[A-Z]+)?_HEADERS)$" $name }}
{{- fail (printf "env.%s: is a secret, which the ConfigMap of both programs must not have; put it into the Secret keyturn-watcher-env, keyturn-actuator-env or keyturn-audit-env" $name) }}
{{- end -}}
{{- with get $elsewhere $name }}
{{- fail (printf "env.%s: is a value of the chart, want it as %s" $name .) }}
{{- end -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- toYaml $env -}}
{{- end }}
