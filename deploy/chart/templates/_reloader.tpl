{{/*
The values of Reloader's chart 2.2, below "reloader". Each has one of
  taken: the value it is converted to, by keyturn.settings
  moot: why nothing has to be done for it
  instead: what to use instead. Ignored if the value is off, empty or one of "unless". With "key", only that key counts
docs/migrate-from-reloader.md documents it. A test compares this table with Reloader's values, and that page with this table.
*/}}
{{- define "keyturn.reloaderValues" -}}
autoReloadAll: {taken: rollAll}
ignoreSecrets: {taken: sources}
ignoreConfigMaps: {taken: sources}
ignoreNamespaces: {taken: namespaceSelector}
namespaceSelector: {taken: namespaceSelector}
resourceLabelSelector: {taken: selector}
logFormat: {taken: logFormat}
logLevel: {taken: logLevel}
watchGlobally: {taken: namespaces}
namespaces: {taken: namespaces}
enableMetricsByNamespace: {taken: env.KEYTURN_RELOADER_METRICS}
reloadOnCreate: {moot: a new source rolls the workloads that started without it}
syncAfterRestart: {moot: changes made while Keyturn was down are always detected}
ignoreJobs: {moot: Jobs are never touched}
readOnlyRootFileSystem: {moot: always on}
pprofAddr: {moot: there is no pprof}
matchLabels: {moot: pod labels are fixed}
service: {moot: metrics are scraped from the pods}
custom_annotations:
  instead: the default annotations, or keyturn.dev/roll-on
isArgoRollouts:
  instead: Deployments, StatefulSets, DaemonSets and CronJobs; Rollouts are not rolled yet
isOpenshift:
  instead: 'podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: null}'
ignoreCronJobs:
  instead: 'the annotation keyturn.dev/roll-on: none on the CronJobs; a change starts no job, the next one has the new content'
reloadOnDelete:
  instead: the next change of the source; running pods keep what was deleted, and new ones could not start without it
reloadStrategy:
  unless: [default, annotations]
  instead: annotations; environment variables are never written
enableHA:
  instead: 'actuator.replicas: 3, or nats.url with two actuators'
enablePProf:
  instead: the metrics and traces, docs/tracing.md
enableCSIIntegration:
  instead: Secrets; a SecretProviderClass is not a source yet
legacy:
  instead: rbac.authorization.k8s.io/v1, which is always used
rbac:
  key: enabled
  unless: [true]
  instead: the chart's permissions, which are the minimum
serviceAccount:
  key: create
  unless: [true]
  instead: the service accounts of the chart, one for each program
podMonitor:
  key: enabled
  instead: monitoring.enabled, with monitoring.namespace
serviceMonitor:
  key: enabled
  instead: monitoring.enabled, with monitoring.namespace
podDisruptionBudget:
  instead: nothing; one is created for several actuators or watchers, and a drained pod loses no change
netpol:
  key: enabled
  instead: networkPolicy.enabled, which is the default
verticalPodAutoscaler:
  key: enabled
  instead: watcher.resources and actuator.resources
webhookUrl:
  instead: a webhook in KEYTURN_NOTIFY_CONFIG, docs/notifications.md
deployment: {taken: watcher and actuator}
{{- end }}

{{/*
The same for the values below "reloader.deployment".
*/}}
{{- define "keyturn.reloaderDeployment" -}}
labels: {moot: pod labels are fixed}
revisionHistoryLimit: {moot: the default of Kubernetes applies}
securityContext: {moot: the chart's is stricter}
containerSecurityContext: {moot: the chart's is stricter}
livenessProbe: {moot: Keyturn has other probes}
readinessProbe: {moot: Keyturn has other probes}
gomaxprocsOverride: {moot: the programs respect their limits}
gomemlimitOverride: {moot: the programs respect their limits}
annotations: {moot: nothing reads them}
replicas:
  unless: [1]
  instead: watcher.replicas and actuator.replicas
resources:
  instead: watcher.resources and actuator.resources
nodeSelector:
  instead: watcher.nodeSelector and actuator.nodeSelector
affinity:
  instead: watcher.affinity and actuator.affinity
tolerations:
  instead: watcher.tolerations and actuator.tolerations
topologySpreadConstraints:
  instead: watcher.affinity and actuator.affinity; pods are spread over nodes already
dnsConfig:
  instead: a patch of the manifests, by helm --post-renderer
hostUsers:
  instead: a patch of the manifests, by helm --post-renderer
priorityClassName:
  instead: the PriorityClass keyturn of the chart, or a patch by helm --post-renderer
runtimeClassName:
  instead: a patch of the manifests, by helm --post-renderer
schedulerName:
  instead: a patch of the manifests, by helm --post-renderer
volumes:
  instead: watcher.volumes and actuator.volumes
volumeMounts:
  instead: watcher.volumeMounts and actuator.volumeMounts
pod:
  instead: watcher.podAnnotations and actuator.podAnnotations
imagePullSecrets:
  instead: imagePullSecrets
env:
  instead: env for flags, and KEYTURN_NOTIFY_CONFIG for ALERT_*, docs/notifications.md
{{- end }}

{{/*
Fails with one line about the first of Reloader's values that is not supported. It never prints an address or a password.
*/}}
{{- define "keyturn.checkReloader" -}}
{{- $top := include "keyturn.reloaderValues" . | fromYaml -}}
{{- $deployment := include "keyturn.reloaderDeployment" . | fromYaml -}}
{{- include "keyturn.checkReloaderValues" (list "reloader" .Values.reloader $top) -}}
{{- include "keyturn.checkReloaderValues" (list "reloader.deployment" (get .Values.reloader "deployment" | default dict) $deployment) -}}
{{- if regexMatch ":" (get .Values.reloader "namespaceSelector" | default "") -}}
{{- fail (printf "reloader.namespaceSelector: is %q, want a label selector of Kubernetes: key=value, or key alone for any value" .Values.reloader.namespaceSelector) -}}
{{- end -}}
{{- end }}

{{- define "keyturn.checkReloaderValues" -}}
{{- $path := index . 0 }}{{ $table := index . 2 -}}
{{- range $name, $value := index . 1 -}}
{{- $field := printf "%s.%s" $path $name -}}
{{- if not (hasKey $table $name) }}
{{- fail (printf "%s: is no value of Reloader's chart, want one of: %s" $field (keys $table | sortAlpha | join ", ")) }}
{{- end -}}
{{- $meaning := get $table $name -}}
{{- with $meaning.key }}{{ $field = printf "%s.%s" $field . }}{{ $value = get ($value | default dict) . }}{{ end -}}
{{- if kindIs "map" $value }}{{ $value = values $value | compact }}{{ end -}}
{{- $asks := not (or (empty $value) (eq (toString $value) "false")) -}}
{{- if $meaning.unless }}{{ $asks = not (or (has (toString $value) (list "" "<nil>")) (has $value $meaning.unless)) }}{{ end -}}
{{- if and $meaning.instead $asks }}
{{- $said := ternary (toString $value) "set" (or (kindIs "bool" $value) (hasKey $meaning "unless")) }}
{{- fail (printf "%s: is %s, which Keyturn does not have; use instead: %s" $field $said $meaning.instead) }}
{{- end -}}
{{- end -}}
{{- end }}
