{{/*
The rules, each with its reason. They are given by ClusterRoles, or by Roles in the namespaces that are served. The first ones
take keyturn.settings.
*/}}
{{- define "keyturn.identityRule" -}}
{{- if not .namespaces }}
# Which cluster this is, so that no other that was given its name is taken for it. One namespace by name, and no list.
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
{{- end }}
{{- end }}

{{- define "keyturn.watcherRules" -}}
# The sources. They are read by list and watch alone.
- apiGroups: [""]
  resources:
  {{- range .sources }}
    - {{ . }}s
  {{- end }}
  verbs: [list, watch]
{{- include "keyturn.identityRule" . }}
{{- end }}

{{- define "keyturn.actuatorRules" -}}
# The workloads: what they reference and how their rollouts go is watched, and one patch rolls.
- apiGroups: [apps]
  resources: [deployments, statefulsets, daemonsets]
  verbs: [list, watch, patch]
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [list, watch, patch]
# What became of a change is told on the workload.
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- include "keyturn.identityRule" . }}
{{- end }}

{{- define "keyturn.namespacesRules" -}}
# The labels of namespaces, for the selector.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
{{- end }}

{{- define "keyturn.watcherStoreRules" -}}
# What writes Secrets, and how that stands. It is read by list and watch alone, like the Secrets.
- apiGroups: [external-secrets.io]
  resources: [externalsecrets]
  verbs: [list, watch]
# Which server is meant by what is referenced, for stores that are polled by reference.
- apiGroups: [external-secrets.io]
  resources: [secretstores]
  verbs: [list]
- apiGroups: [cert-manager.io]
  resources: [certificates]
  verbs: [list, watch]
{{- end }}

{{- define "keyturn.watcherClusterStoreRules" -}}
- apiGroups: [external-secrets.io]
  resources: [clustersecretstores]
  verbs: [list]
{{- end }}

{{- define "keyturn.actuatorStoreRules" -}}
# Who reads which path of which store.
- apiGroups: [external-secrets.io]
  resources: [externalsecrets, secretstores]
  verbs: [list, watch]
# One annotation has them synced.
- apiGroups: [external-secrets.io]
  resources: [externalsecrets]
  verbs: [patch]
{{- end }}

{{- define "keyturn.actuatorClusterStoreRules" -}}
- apiGroups: [external-secrets.io]
  resources: [clustersecretstores, clusterexternalsecrets]
  verbs: [list, watch]
- apiGroups: [external-secrets.io]
  resources: [clusterexternalsecrets]
  verbs: [patch]
{{- end }}

{{/*
Gives rules to the service account of a program: by a ClusterRole, or by a Role in each of the namespaces that are served, with a
ClusterRole for what is in no namespace. It takes root, program, suffix of the name, rules and clusterRules.
*/}}
{{- define "keyturn.grant" -}}
{{- $settings := include "keyturn.settings" .root | fromYaml -}}
{{- if not $settings.namespaces -}}
{{- include "keyturn.role" (merge (dict "rules" (list .rules .clusterRules | compact | join "\n")) .) -}}
{{- else -}}
{{- $grant := . -}}
{{- range $namespace := ternary $settings.namespaces list (ne .rules "") -}}
{{- include "keyturn.role" (merge (dict "namespace" $namespace) $grant) -}}
{{- end -}}
{{- with .clusterRules }}{{ include "keyturn.role" (merge (dict "rules" .) $grant) }}{{ end -}}
{{- end -}}
{{- end }}

{{- define "keyturn.role" -}}
{{- $name := printf "keyturn-%s%s" .program .suffix -}}
{{- $kind := ternary "Role" "ClusterRole" (hasKey . "namespace") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: keyturn-{{ .program }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
