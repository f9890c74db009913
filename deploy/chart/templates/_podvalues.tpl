{{/*
The values of a program's pods, with those of Reloader's one pod, which both programs get: maps and lists add up, and any other of Reloader's
values takes precedence, because a default cannot be told from a value. Arguments: the chart's root and the program's name.
*/}}
{{- define "keyturn.podValues" -}}
{{- $root := index . 0 }}{{ $program := index . 1 -}}
{{- /* The receiver of audits, the projector and the one pod have the values of the watcher. The last has those of the actuator, too. */ -}}
{{- $values := deepCopy (get $root.Values (ternary "watcher" $program (has $program (list "audit" "projector" "keyturn")))) -}}
{{- if eq $program "keyturn" -}}
{{- range $name := list "tolerations" "volumes" "volumeMounts" "extraArgs" "extraEnv" -}}
{{- $_ := set $values $name (concat (get $values $name) (get $root.Values.actuator $name) | uniq) -}}
{{- end -}}
{{- range $name := list "annotations" "podLabels" "podAnnotations" "nodeSelector" -}}
{{- $_ := set $values $name (merge (dict) (get $values $name) (get $root.Values.actuator $name)) -}}
{{- end -}}
{{- end -}}
{{- $values = merge (deepCopy $root.Values.pod) $values -}}
{{- $theirs := get $root.Values.reloader "deployment" | default dict -}}
{{- range $name := list "tolerations" "volumes" "volumeMounts" -}}
{{- $_ := set $values $name (concat (get $values $name) (get $theirs $name | default list) | uniq) -}}
{{- end -}}
{{- range $name := list "affinity" "dnsConfig" "priorityClassName" "resources" "runtimeClassName" "schedulerName" -}}
{{- with get $theirs $name }}{{ $_ := set $values $name . }}{{ end -}}
{{- end -}}
{{- if kindIs "bool" (get $theirs "hostUsers") }}{{ $_ := set $values "hostUsers" $theirs.hostUsers }}{{ end -}}
{{- /* Their selectors choose Reloader's pods, and would spread none of ours. */ -}}
{{- $spread := list -}}
{{- range get $theirs "topologySpreadConstraints" | default list }}{{ $spread = append $spread (omit . "labelSelector" "matchLabelKeys") }}{{ end -}}
{{- with $spread }}{{ $_ := set $values "topologySpreadConstraints" . }}{{ end -}}
{{- /* The labels that Reloader's chart has by default name its own version. */ -}}
{{- $labels := include "keyturn.evaluated" (list $root (get $theirs "labels")) | fromYaml -}}
{{- if eq (get $labels "provider") "stakater" }}{{ $labels = omit $labels "provider" "group" "version" }}{{ end -}}
{{- $_ := set $values "labels" $labels -}}
{{- $_ := set $values "podLabels" (merge (dict) (include "keyturn.evaluated" (list $root (get $root.Values.reloader "matchLabels")) | fromYaml) $labels $values.podLabels) -}}
{{- $_ := set $values "annotations" (merge (dict) (include "keyturn.evaluated" (list $root (get $theirs "annotations")) | fromYaml) $values.annotations) -}}
{{- $_ := set $values "nodeSelector" (merge (dict) (get $theirs "nodeSelector" | default dict) $values.nodeSelector (include "keyturn.linux" $root | fromYaml)) -}}
{{- $pod := get $theirs "pod" | default dict -}}
{{- $_ := set $values "podAnnotations" (merge (dict) (include "keyturn.evaluated" (list $root (get $pod "annotations")) | fromYaml) $values.podAnnotations) -}}
{{- toYaml $values -}}
{{- end }}

{{/*
The nodes that can run the image. One with Windows need not have a taint.
*/}}
{{- define "keyturn.linux" -}}
kubernetes.io/os: linux
{{- end }}

{{/*
The names of pull secrets, of which Helm's global values may have bare names.
*/}}
{{- define "keyturn.imagePullSecrets" -}}
{{- $all := .Values.imagePullSecrets -}}
{{- $theirs := get (get .Values.reloader "deployment" | default dict) "imagePullSecrets" | default list -}}
{{- range concat $theirs (.Values.global.imagePullSecrets | default list) -}}
{{- $all = append $all (ternary . (dict "name" .) (kindIs "map" .)) -}}
{{- end -}}
{{- uniq $all | toYaml -}}
{{- end }}

{{/*
The account of a program. No other has it: of two programs none must read Secrets and write workloads. Arguments: the chart's root and the program's name.
*/}}
{{- define "keyturn.serviceAccountName" -}}
{{- $root := index . 0 }}{{ $program := index . 1 -}}
{{- if has $program (list "audit" "projector") -}}
{{- include "keyturn.named" . -}}
{{- else -}}
{{- $names := dict -}}
{{- range $each := include "keyturn.programs" $root | fromJsonArray -}}
{{- $values := ternary "actuator" $each (eq $each "keyturn") -}}
{{- $account := (get $root.Values $values).serviceAccount -}}
{{- $field := printf "%s.serviceAccount.name" $values -}}
{{- if and (not $account.create) (not $account.name) -}}
{{- fail (printf "%s: is empty, want the account to use if create is false" $field) }}
{{- end -}}
{{- $taken := list -}}
{{- range list "audit" "keys" "projector" }}{{ $taken = append $taken (include "keyturn.named" (list $root .)) }}{{ end -}}
{{- if has $account.name $taken -}}
{{- fail (printf "%s: is %q, which has other permissions, want another name" $field $account.name) }}
{{- end -}}
{{- $_ := set $names $each ($account.name | default (include "keyturn.named" (list $root $each))) -}}
{{- end -}}
{{- if and (gt (len $names) 1) (eq $names.watcher $names.actuator) -}}
{{- fail (printf "actuator.serviceAccount.name: is %q, as is watcher.serviceAccount.name, want two accounts: one with both permissions could read Secrets and write workloads" $names.actuator) }}
{{- end -}}
{{- get $names $program -}}
{{- end -}}
{{- end }}

{{/*
The class of the chart is cluster-scoped, so an installation for some namespaces has none.
*/}}
{{- define "keyturn.priorityClassName" -}}
{{- $all := (include "keyturn.settings" (index . 0) | fromYaml).namespaces -}}
{{- $own := include "keyturn.nameOutside" (list (index . 0) (include "keyturn.named" (list (index . 0) "keyturn"))) -}}
{{- $without := or (not (empty $all)) (has (index . 1) (list "audit" "projector" "keyturn")) -}}
{{- (include "keyturn.podValues" . | fromYaml).priorityClassName | default (ternary "" $own $without) -}}
{{- end }}

{{/*
With Reloader's, of which the user 65534 is a default that cannot be told from a value. OpenShift assigns the user and the groups itself.
*/}}
{{- define "keyturn.podSecurityContext" -}}
{{- $theirs := get (get .Values.reloader "deployment" | default dict) "securityContext" | default dict -}}
{{- if eq (toString (get $theirs "runAsUser")) "65534" }}{{ $theirs = omit $theirs "runAsUser" }}{{ end -}}
{{- $context := merge (deepCopy $theirs) .Values.podSecurityContext -}}
{{- if eq (toString (get .Values.reloader "isOpenshift")) "true" }}{{ $context = omit $context "runAsUser" "runAsGroup" "fsGroup" }}{{ end -}}
{{- toYaml $context -}}
{{- end }}
