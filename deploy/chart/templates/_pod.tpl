{{/*
What both programs' pods have in common. Arguments: the chart's root and the program's name.
*/}}
{{- define "keyturn.podMetadata" -}}
{{- $root := index . 0 }}{{ $program := index . 1 -}}
labels:
  app.kubernetes.io/name: keyturn-{{ $program }}
  app.kubernetes.io/part-of: keyturn
annotations:
  # The ConfigMaps keep their names, so this restarts the pods when they change.
  checksum/config: {{ include (print $root.Template.BasePath "/configmaps.yaml") $root | sha256sum }}
  {{- with (get $root.Values $program).podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "keyturn.podSpec" -}}
{{- $root := index . 0 }}{{ $program := index . 1 }}{{ $values := get $root.Values $program -}}
serviceAccountName: keyturn-{{ $program }}
automountServiceAccountToken: true
# Otherwise Kubernetes sets KEYTURN_NATS_PORT and the like for the Service, which look like our own variables.
enableServiceLinks: false
# Enough to finish and ack in-flight work, and to close NATS last.
terminationGracePeriodSeconds: 30
{{- if not (include "keyturn.settings" $root | fromYaml).namespaces }}
priorityClassName: keyturn
{{- end }}
# Spread replicas over nodes. Two of three copies of the stream on one node would be lost with it, and with them the majority.
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: {{ ternary "DoNotSchedule" "ScheduleAnyway" (and (eq $program "actuator") (eq (include "keyturn.replicated" $root) "true")) }}
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
These name the pod in spans and metrics, and the actuator in its Lease.
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
