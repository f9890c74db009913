{{/*
The labels and, with the chart's own, the recommended ones of an object. Arguments: the chart's root, the object's component and, if values have labels
for this object, those.
*/}}
{{- define "keyturn.labels" -}}
labels:
  {{- merge (dict) (include "keyturn.podLabels" . | fromYaml) (include "keyturn.chartLabel" (index . 0) | fromYaml) | toYaml | nindent 2 }}
{{- end }}

{{/*
The same for pods, which another version of the chart alone does not replace. Selectors have the first two, which no value changes.
*/}}
{{- define "keyturn.podLabels" -}}
{{- $root := index . 0 }}{{ $component := index . 1 -}}
{{- if eq $component "keyturn" }}{{ $component = "installation" }}{{ end -}}
{{- $name := ternary "keyturn" (printf "keyturn-%s" $component) (eq $component "installation") -}}
{{- $fixed := dict "app.kubernetes.io/name" $name "app.kubernetes.io/part-of" "keyturn" -}}
{{- $given := ternary (last .) dict (gt (len .) 2) -}}
{{- merge $fixed $given $root.Values.commonLabels (dict "app.kubernetes.io/component" $component) (include "keyturn.releaseLabels" $root | fromYaml) | toYaml -}}
{{- end }}

{{- define "keyturn.releaseLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/version: {{ regexReplaceAll "[^A-Za-z0-9_.-]" (include "keyturn.version" .) "" | trunc 63 | trimAll "-_." | quote }}
{{- end }}

{{- define "keyturn.chartLabel" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/*
The version of the programs: the tag of the image. For an image that has only a digest it is that of the chart, which they share.
*/}}
{{- define "keyturn.version" -}}
{{- (include "keyturn.imageValues" . | fromYaml).tag | default .Chart.AppVersion -}}
{{- end }}

{{/*
A file with manifests of kustomize, with the labels of this release in place of those of kustomize. Arguments: the chart's root and the manifests.
*/}}
{{- define "keyturn.relabelled" -}}
{{- $root := index . 0 -}}
{{- $labels := merge (dict) $root.Values.commonLabels (include "keyturn.releaseLabels" $root | fromYaml) (include "keyturn.chartLabel" $root | fromYaml) -}}
{{- $labels = omit $labels "app.kubernetes.io/component" "app.kubernetes.io/name" "app.kubernetes.io/part-of" -}}
{{- index . 1 | replace "    app.kubernetes.io/instance: keyturn\n    app.kubernetes.io/managed-by: kustomize" (toYaml $labels | indent 4) -}}
{{- end }}
