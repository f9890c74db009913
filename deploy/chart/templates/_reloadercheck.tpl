{{/*
Fails with one line about the first of Reloader's values that is not supported. It never prints an address or a password.
*/}}
{{- define "keyturn.checkReloader" -}}
{{- $has := list -}}
{{- if or (gt (int .Values.actuator.replicas) 1) .Values.nats.url }}{{ $has = concat $has (list "reloader.enableHA" "reloader.deployment.replicas") }}{{ end -}}
{{- if and .Values.watcher.serviceAccount.name .Values.actuator.serviceAccount.name -}}
{{- $has = append $has "reloader.serviceAccount.name" -}}
{{- if not (or .Values.watcher.serviceAccount.create .Values.actuator.serviceAccount.create) -}}
{{- $has = append $has "reloader.serviceAccount.create" -}}
{{- end -}}
{{- end -}}
{{- include "keyturn.checkReloaderValues" (list "reloader" .Values.reloader (include "keyturn.reloaderValues" . | fromYaml) $has) -}}
{{- if and (get .Values.reloader "namespaces") (ne (toString (get .Values.reloader "watchGlobally")) "false") }}
{{- fail "reloader.namespaces: is set with reloader.watchGlobally, which watches all; use instead: reloader.watchGlobally: false" }}
{{- end -}}
{{- include "keyturn.checkReloaderFile" . -}}
{{- end }}

{{/*
Arguments: the path of some values, the values, what is known of them, and the paths whose substitute is there.
*/}}
{{- define "keyturn.checkReloaderValues" -}}
{{- $path := index . 0 }}{{ $table := index . 2 }}{{ $has := index . 3 -}}
{{- range $name, $value := index . 1 -}}
{{- $field := printf "%s.%s" $path $name -}}
{{- if not (or (hasKey $table $name) (has $path (list "reloader.deployment.env.open" "reloader.deployment.env.secret" "reloader.deployment.env.field"))) }}
{{- fail (printf "%s: is no value of Reloader's chart, want one of: %s" $field (keys $table | sortAlpha | join ", ")) }}
{{- end -}}
{{- $meaning := get $table $name | default dict -}}
{{- if and $meaning.below $value (not (kindIs "map" $value)) }}
{{- fail (printf "%s: is no map, want one of %s" $field (keys $meaning.below | sortAlpha | join ", ")) }}
{{- end -}}
{{- with $meaning.below }}{{ include "keyturn.checkReloaderValues" (list $field ($value | default dict) . $has) }}{{ end -}}
{{- if kindIs "map" $value }}{{ $value = values $value | compact }}{{ end -}}
{{- $asks := not (or (empty $value) (eq (toString $value) "false")) -}}
{{- if $meaning.unless }}{{ $asks = not (or (has (toString $value) (list "" "<nil>")) (has (toString $value) (toStrings $meaning.unless))) }}{{ end -}}
{{- if and $meaning.instead $asks (not (has $field $has)) }}
{{- $said := ternary (toString $value) "set" (or (kindIs "bool" $value) (hasKey $meaning "unless")) }}
{{- fail (printf "%s: is %s, which Keyturn does not have; use instead: %s" $field $said $meaning.instead) }}
{{- end -}}
{{- end -}}
{{- end }}

{{/*
The values of Reloader's chart that are not below "reloader", so that its file can be used whole.
*/}}
{{- define "keyturn.checkReloaderFile" -}}
{{- $instead := dict "nameOverride" "fullnameOverride" "namespace" "helm --namespace" -}}
{{- range $name, $use := $instead -}}
{{- if get $.Values $name }}
{{- fail (printf "%s: is %q, which Keyturn does not have; use instead: %s" $name (get $.Values $name) $use) }}
{{- end -}}
{{- end -}}
{{- $repository := .Values.image.repository -}}
{{- if and (hasSuffix "stakater/reloader" $repository) (ne $repository "ghcr.io/stakater/reloader") }}
{{- fail (printf "image.repository: is %q, want the image of Keyturn, with its image.tag" $repository) }}
{{- end -}}
{{- $given := not (has $repository (list (include "keyturn.repository" .) "ghcr.io/stakater/reloader")) -}}
{{- if not (or $given (has (get .Values.image "name" | default "") (list "" "stakater/reloader"))) }}
{{- fail (printf "image.name: is %q, which Keyturn does not have; use instead: image.repository" .Values.image.name) }}
{{- end -}}
{{- end }}
