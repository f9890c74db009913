{{/*
What the pods of both programs have in common. They take the chart's root and the name of the program.
*/}}
{{- define "keyturn.podMetadata" -}}
{{- $root := index . 0 }}{{ $program := index . 1 -}}
labels:
  app.kubernetes.io/name: keyturn-{{ $program }}
  app.kubernetes.io/part-of: keyturn
annotations:
  # The names of the ConfigMaps stay the same, so it is this that has the pods replaced when they change.
  checksum/config: {{ include (print $root.Template.BasePath "/configmaps.yaml") $root | sha256sum }}
  {{- with (get $root.Values $program).podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "keyturn.podSpec" -}}
{{- $root := index . 0 }}{{ $program := index . 1 }}{{ $values := get $root.Values $program -}}
serviceAccountName: keyturn-{{ $program }}
automountServiceAccountToken: true
# Kubernetes would set KEYTURN_NATS_PORT and the like for the Service, and KEYTURN_ is the prefix of our own variables.
enableServiceLinks: false
# What is in progress is finished and acknowledged first, and NATS is closed last.
terminationGracePeriodSeconds: 30
{{- if not (include "keyturn.settings" $root | fromYaml).namespaces }}
priorityClassName: keyturn
{{- end }}
# One on each node, where there are more than one.
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        app.kubernetes.io/name: keyturn-{{ $program }}
{{- range $field, $value := dict "imagePullSecrets" $root.Values.imagePullSecrets "nodeSelector" $values.nodeSelector "tolerations" $values.tolerations "affinity" $values.affinity }}
{{- with $value }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/*
How spans and metrics name the pod that they come from, and the actuator itself in the Lease.
*/}}
{{- define "keyturn.podEnv" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: POD_UID
  valueFrom:
    fieldRef:
      fieldPath: metadata.uid
{{- end }}

{{- define "keyturn.image" -}}
{{- $image := .Values.image -}}
image: {{ $image.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- with $image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end }}

{{- define "keyturn.probes" -}}
livenessProbe:
  httpGet:
    path: /livez
    port: healthz
  periodSeconds: 10
  failureThreshold: 6
readinessProbe:
  httpGet:
    path: /readyz
    port: healthz
  periodSeconds: 5
{{- end }}

{{- define "keyturn.containerSecurityContext" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}
