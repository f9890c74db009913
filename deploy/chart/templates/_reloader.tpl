{{/*
The values of Reloader's chart 2.2, below "reloader". Each has one of
  taken: what it is converted to
  moot: why nothing has to be done for it
  instead: what to use instead. Ignored if the value is off, empty or one of "unless", or if the values have what it asks for
  below: the same for the values below it
docs/reference/reloader.md documents it. A test compares this table with Reloader's values, and that page with this table.
*/}}
{{- define "keyturn.reloaderValues" -}}
autoReloadAll: {taken: rollAll}
ignoreSecrets: {taken: sources}
ignoreConfigMaps: {taken: sources}
ignoreNamespaces: {taken: env.KEYTURN_IGNORE_NAMESPACES}
namespaceSelector: {taken: namespaceSelector}
resourceLabelSelector: {taken: selector}
logFormat: {taken: logFormat}
logLevel: {taken: logLevel}
watchGlobally: {taken: namespaces}
namespaces: {taken: namespaces}
enableMetricsByNamespace: {moot: all metrics under the names of Reloader are on}
isArgoRollouts: {taken: argoRollouts.enabled}
custom_annotations:
  below:
    {{- range $name := keys (include "keyturn.reloaderAnnotations" . | fromYaml) | sortAlpha }}
    {{ $name }}: {taken: env.KEYTURN_RELOADER}
    {{- end }}
ignoreCronJobs: {taken: env.KEYTURN_WORKLOAD_KINDS}
ignoreJobs: {taken: env.KEYTURN_JOBS}
reloadOnCreate: {taken: env.KEYTURN_ROLL_ON_CREATE}
reloadOnDelete: {taken: env.KEYTURN_ROLL_ON_DELETE}
reloadStrategy: {taken: env.KEYTURN_RELOADER}
enableCSIIntegration: {taken: secretProviderClasses.enabled}
isOpenshift: {taken: 'the security context of the pods without user and groups, and networkPolicy.dns.ports with 5353'}
matchLabels: {taken: labels of the pods; what selects them is fixed}
service: {taken: the Service keyturn-metrics}
syncAfterRestart: {moot: changes made while Keyturn was down are always detected}
readOnlyRootFileSystem: {moot: always on}
pprofAddr: {moot: it is only used with enablePProf}
podDisruptionBudget:
  below:
    enabled: {taken: one for the watcher and one for the actuator}
    minAvailable: {taken: the same}
    maxUnavailable: {taken: the same}
enableHA:
  instead: 'actuator.replicas: 3, or nats.url with two actuators'
enablePProf:
  instead: the metrics and traces, docs/how-to/tracing.md
legacy:
  below:
    rbac: {instead: rbac.authorization.k8s.io/v1, which is always used}
rbac:
  below:
    enabled: {taken: rbac.create}
    labels: {taken: labels of the roles}
serviceAccount:
  below:
    create:
      unless: [true]
      instead: watcher.serviceAccount and actuator.serviceAccount, because each program has its own
    name: {instead: 'watcher.serviceAccount.name and actuator.serviceAccount.name, which differ, because each program has its own'}
    labels: {taken: the labels of both accounts}
    annotations: {taken: the annotations of both accounts}
    automountServiceAccountToken: {moot: only the pods mount the token}
podMonitor: {below: {{ omit (include "keyturn.reloaderMonitor" . | fromYaml) "targetLabels" "bearerTokenFile" | toJson }}}
serviceMonitor: {below: {{ omit (include "keyturn.reloaderMonitor" . | fromYaml) "podTargetLabels" "bearerTokenSecret" | toJson }}}
netpol:
  below:
    enabled: {moot: 'networkPolicy.enabled, which is the default'}
    from: {taken: networkPolicy.from}
    to: {taken: networkPolicy.to}
verticalPodAutoscaler: {taken: verticalPodAutoscaler}
webhookUrl: {taken: 'KEYTURN_RELOADER, from the Secret keyturn-reloader'}
deployment: {below: {{ include "keyturn.reloaderDeployment" . | fromYaml | toJson }}}
{{- end }}

{{/*
A map of Reloader's values in which its chart evaluates templates, such as {{ .Release.Name }}. Arguments: the chart's root and the map.
*/}}
{{- define "keyturn.evaluated" -}}
{{- tpl (index . 1 | default dict | toYaml) (index . 0) -}}
{{- end }}

{{- define "keyturn.reloaderVariables" -}}
KUBERNETES_NAMESPACE: {instead: 'reloader.watchGlobally: false'}
METRICS_COUNT_BY_NAMESPACE: {instead: 'reloader.enableMetricsByNamespace: true'}
{{- end }}

{{- define "keyturn.reloaderMonitor" -}}
enabled: {taken: monitoring.enabled}
namespace: {taken: the namespace of the PodMonitors}
interval: {taken: monitoring.podMonitor.interval}
timeout: {taken: monitoring.podMonitor.scrapeTimeout}
labels: {taken: monitoring.labels}
annotations: {taken: annotations of the PodMonitors and alerts}
honorLabels: {taken: monitoring.podMonitor.honorLabels}
relabelings: {taken: monitoring.podMonitor.relabelings}
metricRelabelings: {taken: monitoring.podMonitor.metricRelabelings}
podTargetLabels: {taken: monitoring.podMonitor.podTargetLabels}
targetLabels: {taken: monitoring.podMonitor.podTargetLabels}
scheme: {unless: [http], instead: http; the pods serve metrics without TLS}
tlsConfig: {instead: http; the pods serve metrics without TLS}
bearerTokenSecret: {instead: networkPolicy.from; the pods serve metrics without a token}
bearerTokenFile: {instead: networkPolicy.from; the pods serve metrics without a token}
{{- end }}

{{- define "keyturn.reloaderDeployment" -}}
labels: {taken: labels of the programs and of their pods}
annotations: {taken: annotations}
pod: {below: {annotations: {taken: podAnnotations}}}
resources: {taken: resources}
nodeSelector: {taken: nodeSelector}
affinity: {taken: pod.affinity}
tolerations: {taken: tolerations}
topologySpreadConstraints: {taken: 'pod.topologySpreadConstraints, which select the pods of each program'}
dnsConfig: {taken: pod.dnsConfig}
hostUsers: {taken: pod.hostUsers}
priorityClassName: {taken: pod.priorityClassName}
runtimeClassName: {taken: pod.runtimeClassName}
schedulerName: {taken: pod.schedulerName}
volumes: {taken: volumes}
volumeMounts: {taken: volumeMounts}
imagePullSecrets: {taken: imagePullSecrets}
revisionHistoryLimit: {taken: the same}
securityContext: {taken: 'podSecurityContext, but for the user 65534'}
containerSecurityContext: {taken: 'securityContext, which makes the containers no less strict'}
livenessProbe: {below: {{ include "keyturn.reloaderProbe" . | fromYaml | toJson }}}
readinessProbe: {below: {{ include "keyturn.reloaderProbe" . | fromYaml | toJson }}}
gomaxprocsOverride: {taken: GOMAXPROCS of both programs}
gomemlimitOverride: {taken: GOMEMLIMIT of both programs}
automountServiceAccountToken: {taken: the same}
replicas:
  unless: [1]
  instead: watcher.replicas and actuator.replicas
env:
  below:
    # All others are the environment of both programs, but ALERT_*, which is in the Secret keyturn-reloader.
    open: {below: {{ include "keyturn.reloaderVariables" . | fromYaml | toJson }}}
    # That of the actuator, from the Secret keyturn-reloader.
    secret: {below: {{ include "keyturn.reloaderVariables" . | fromYaml | toJson }}}
    existing: {taken: the environment of the actuator}
    field: {below: {{ include "keyturn.reloaderVariables" . | fromYaml | toJson }}}
{{- end }}

{{- define "keyturn.reloaderProbe" -}}
{{- range $field := list "timeoutSeconds" "failureThreshold" "periodSeconds" "successThreshold" "initialDelaySeconds" }}
{{ $field }}: {taken: the same}
{{- end }}
{{- end }}
