{{/*
The rules, each with its reason, for ClusterRoles or for Roles in the served namespaces. The first ones take keyturn.settings.
*/}}
{{- define "keyturn.identityRule" -}}
{{- if not .namespaces }}
# The identity of the cluster, to detect two clusters with the same name. One namespace by name, no list.
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
{{- end }}
{{- end }}

{{- define "keyturn.watcherRules" -}}
# The sources, read only by list and watch.
- apiGroups: [""]
  resources:
  {{- range .sources }}
    - {{ . }}s
  {{- end }}
  verbs: [list, watch]
{{- end }}

{{- define "keyturn.actuatorRules" -}}
# The workloads: watch references and rollouts, and roll with one patch.
- apiGroups: [apps]
  resources: [deployments, statefulsets, daemonsets]
  verbs: [list, watch, patch]
{{- if has "cronjob" .workloadKinds }}
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [list, watch, patch]
{{- end }}
# Report outcomes on the workload.
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# Holds and windows that annotations of namespaces say. A Role cannot grant to list or watch its namespace.
- apiGroups: [""]
  resources: [namespaces]
  verbs: {{ ternary "[get]" "[list, watch]" (not (empty .namespaces)) }}
{{- if not .namespaces }}
# Whether the policies that confine this account are there. They have no secret.
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingadmissionpolicies, validatingadmissionpolicybindings]
  verbs: [list]
{{- end }}
{{- end }}

{{- define "keyturn.actuatorArgoRolloutsRules" -}}
# The workloads of Argo Rollouts: watch references and rollouts, and roll with one patch.
- apiGroups: [argoproj.io]
  resources: [rollouts]
  verbs: [list, watch, patch]
{{- end }}

{{- define "keyturn.actuatorTargetsRules" -}}
{{- range .Values.targets }}
# Watch references and rollouts, and roll with one patch.
- apiGroups: [{{ splitList "/" .apiVersion | first }}]
  resources: [{{ .resource }}]
  verbs: [list, watch, patch]
{{- end }}
{{- end }}

{{/*
What the projector may do in a namespace. Arguments: projections and namespace.
*/}}
{{- define "keyturn.projectorRules" -}}
{{- $namespace := .namespace -}}
{{- range .projections }}
{{- $names := list -}}
{{- range .secrets }}{{ if eq .namespace $namespace }}{{ $names = append $names .name }}{{ end }}{{ end -}}
{{- with $names }}
# Read the Secrets that it was given, by name. It never lists them.
- apiGroups: [""]
  resources: [secrets]
  resourceNames: {{ uniq . | toJson }}
  verbs: [get]
{{- end }}
{{- if $names }}
# See what resources want, and apply their fields.
- apiGroups: [{{ splitList "/" .apiVersion | first }}]
  resources: [{{ .resource }}]
  verbs: [list, watch, patch]
{{- end }}
{{- end }}
# Say on the resource what became of them.
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end }}

{{/*
The names on the way to each field that the projector may write, as an expression in YAML. Arguments: their paths.
*/}}
{{- define "keyturn.projectionPaths" -}}
{{- $paths := list -}}
{{- range . }}
{{- $names := list -}}
{{- range regexFindAll "\\['[^']+'\\]|[^.\\[]+" . -1 }}{{ $names = append $names (printf "'%s'" (trimPrefix "['" . | trimSuffix "']" | replace "\\" "\\\\")) }}{{ end -}}
{{- $paths = append $paths (printf "[%s]" (join ", " $names)) -}}
{{- end -}}
{{- printf "[%s]" (join ", " $paths) | quote -}}
{{- end }}

{{- define "keyturn.actuatorJobsRules" -}}
# Jobs: watch references, write records, and make a Job anew; start one of a CronJob, and see whether that was done before.
- apiGroups: [batch]
  resources: [jobs]
  verbs: {{ ternary "[list, watch, patch, get, create, delete]" "[get, create]" .recreateJobs }}
{{- end }}

{{- define "keyturn.actuatorReloadInPlaceRules" -}}
# The pods of a workload that are asked to reload, and their addresses. Nothing is written on them.
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{- end }}

{{- define "keyturn.namespacesRules" -}}
# Namespace labels, for the selector.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
{{- end }}

{{- define "keyturn.watcherStoreRules" -}}
# What writes Secrets, and its status. Read only by list and watch, like the Secrets.
- apiGroups: [external-secrets.io]
  resources: [externalsecrets]
  verbs: [list, watch]
# To resolve references to a server, for stores that are polled by reference.
- apiGroups: [external-secrets.io]
  resources: [secretstores]
  verbs: [list]
- apiGroups: [cert-manager.io]
  resources: [certificates]
  verbs: [list, watch]
{{- end }}

{{- define "keyturn.watcherSecretProviderClassesRules" -}}
# What the Secrets Store CSI driver mounts, and the versions that it has mounted into each pod. Read only by list and watch.
- apiGroups: [secrets-store.csi.x-k8s.io]
  resources: [secretproviderclasses, secretproviderclasspodstatuses]
  verbs: [list, watch]
{{- end }}

{{- define "keyturn.watcherClusterStoreRules" -}}
- apiGroups: [external-secrets.io]
  resources: [clustersecretstores]
  verbs: [list]
{{- end }}

{{- define "keyturn.actuatorStoreRules" -}}
# To find which ExternalSecrets read which path of which store.
- apiGroups: [external-secrets.io]
  resources: [externalsecrets, secretstores]
  verbs: [list, watch]
# To force a sync with one annotation.
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
Grants rules to a program's service account: by a ClusterRole, or by a Role in each served namespace and a ClusterRole for cluster-scoped
resources. Arguments: root, program, suffix of the name, rules and clusterRules.
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
{{- $name := printf "%s%s" (include "keyturn.named" (list .root .program)) .suffix -}}
{{- if not (hasKey . "namespace") }}{{ $name = include "keyturn.nameOutside" (list .root $name) }}{{ end -}}
{{- $kind := ternary "Role" "ClusterRole" (hasKey . "namespace") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  {{- include "keyturn.rbacLabels" (list .root .program) | nindent 2 }}
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
  {{- include "keyturn.rbacLabels" (list .root .program) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "keyturn.serviceAccountName" (list .root .program) }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}

{{/*
"true" if the chart makes roles and bindings.
*/}}
{{- define "keyturn.rbac" -}}
{{- and .Values.rbac.create (ne (toString (get (get .Values.reloader "rbac" | default dict) "enabled")) "false") -}}
{{- end }}

{{/*
The labels of a role or a binding. Arguments: the chart's root and the program.
*/}}
{{- define "keyturn.rbacLabels" -}}
{{- $theirs := include "keyturn.evaluated" (list (index . 0) (get (get (index . 0).Values.reloader "rbac" | default dict) "labels")) | fromYaml -}}
{{- include "keyturn.labels" (list (index . 0) (index . 1) $theirs) -}}
{{- end }}
