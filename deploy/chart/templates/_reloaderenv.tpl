{{/*
Reloader's environment: what is secret, from a Secret of the chart; the whole of it for the actuator, which sends alerts; for the watcher only
what tells nothing, such as the address of a proxy. A variable that is there twice has one value. Arguments: the chart's root and the program's name.
*/}}
{{- define "keyturn.reloaderPodEnv" -}}
{{- $root := index . 0 }}{{ $alerts := has (index . 1) (list "actuator" "keyturn") -}}
{{- $deployment := get $root.Values.reloader "deployment" | default dict -}}
{{- $env := get $deployment "env" | default dict -}}
{{- $all := dict -}}
{{- range $name, $value := get $env "open" | default dict -}}
{{- if and $value (not (hasPrefix "ALERT_" $name)) }}{{ $_ := set $all $name (dict "value" (toString $value)) }}{{ end -}}
{{- end -}}
{{- range $name, $path := get $env "field" | default dict -}}
{{- if $path }}{{ $_ := set $all $name (dict "valueFrom" (dict "fieldRef" (dict "fieldPath" (toString $path)))) }}{{ end -}}
{{- end -}}
{{- range $name, $value := dict "GOMAXPROCS" "gomaxprocsOverride" "GOMEMLIMIT" "gomemlimitOverride" -}}
{{- $value = toString (get $deployment $value | default "0") -}}
{{- if ne $value "0" }}{{ $_ := set $all $name (dict "value" $value) }}{{ end -}}
{{- end -}}
{{- if $alerts -}}
{{- range $name, $_ := include "keyturn.reloaderSecret" $root | fromYaml -}}
{{- $_ := set $all $name (dict "valueFrom" (dict "secretKeyRef" (dict "name" "keyturn-reloader" "key" $name))) -}}
{{- end -}}
{{- range $secret, $names := get $env "existing" | default dict -}}
{{- range $name, $key := $names | default dict -}}
{{- with $key }}{{ $_ := set $all $name (dict "valueFrom" (dict "secretKeyRef" (dict "name" $secret "key" (toString .)))) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $source := omit $all "POD_NAME" "POD_NAMESPACE" "POD_UID" }}
{{ list (merge (dict "name" $name) $source) | toYaml }}
{{- end -}}
{{- end }}

{{/*
The variables in the chart's Secret, by name. An address is a password, also where Reloader's values have it in the open.
*/}}
{{- define "keyturn.reloaderSecret" -}}
{{- $env := get (get .Values.reloader "deployment" | default dict) "env" | default dict -}}
{{- $secret := dict -}}
{{- range $name, $value := get $env "open" | default dict -}}
{{- if and $value (hasPrefix "ALERT_" $name) }}{{ $_ := set $secret $name (toString $value) }}{{ end -}}
{{- end -}}
{{- range $name, $value := get $env "secret" | default dict -}}
{{- if $value }}{{ $_ := set $secret $name (toString $value) }}{{ end -}}
{{- end -}}
{{- with get .Values.reloader "webhookUrl" -}}
{{- if eq (toString (get $.Values.env "KEYTURN_DRY_RUN")) "true" }}{{ fail "reloader.webhookUrl: is set together with env.KEYTURN_DRY_RUN, want it without: nothing is rolled" }}{{ end -}}
{{- if $.Values.secretStores.enabled }}{{ fail "reloader.webhookUrl: is set together with secretStores.enabled, want it without: nothing is synced" }}{{ end -}}
{{- range $flag := list "reloadOnCreate" "reloadOnDelete" -}}
{{- if eq (toString (get $.Values.reloader $flag)) "true" }}{{ fail (printf "reloader.webhookUrl: is set together with reloader.%s, want it without: it is called when content changes" $flag) }}{{ end -}}
{{- end -}}
{{- $settings := get (include "keyturn.reloaderEnv" $ | fromYaml) "KEYTURN_RELOADER" -}}
{{- $_ := set $secret "KEYTURN_RELOADER" (printf "%s,webhook-url=%s" $settings .) -}}
{{- end -}}
{{- toJson $secret -}}
{{- end }}

{{/*
The ports at which a program reaches what Reloader's values have it call: the webhook, the service of the alerts and proxies. In a dictionary
of which "https" is true if 443 is one of them, "ports" are the others that are not open for the API server anyway, and "any" is true if an
address is in a Secret of somebody else. With a policy of Reloader's, which restricts it to 443, there is only "https".
Arguments: the chart's root and the program's name.
*/}}
{{- define "keyturn.reloaderPorts" -}}
{{- $values := (index . 0).Values.reloader }}{{ $actuator := eq (index . 1) "actuator" -}}
{{- $env := get (get $values "deployment" | default dict) "env" | default dict -}}
{{- $open := get $env "open" | default dict -}}
{{- $known := deepCopy $open }}{{ $hidden := dict -}}
{{- if $actuator -}}
{{- range $name, $value := get $env "secret" | default dict }}{{ $_ := set $known $name $value }}{{ end -}}
{{- range get $env "existing" | default dict }}{{ $hidden = merge $hidden (. | default dict) }}{{ end -}}
{{- end -}}
{{- $names := list "HTTP_PROXY" "HTTPS_PROXY" "ALL_PROXY" "http_proxy" "https_proxy" "all_proxy" -}}
{{- if and $actuator (or (hasKey $hidden "ALERT_ON_RELOAD") (eq (toString (get $known "ALERT_ON_RELOAD")) "true")) -}}
{{- $names = append $names (ternary "ALERT_WEBHOOK_PROXY" "ALERT_WEBHOOK_URL" (or (hasKey $hidden "ALERT_WEBHOOK_PROXY") (not (empty (get $known "ALERT_WEBHOOK_PROXY"))))) -}}
{{- end -}}
{{- $addresses := list -}}
{{- if $actuator }}{{ $addresses = append $addresses (get $values "webhookUrl") }}{{ end -}}
{{- $any := false -}}
{{- range $names -}}
{{- if hasKey $hidden . }}{{ $any = true }}{{ end -}}
{{- $addresses = append $addresses (get $known .) -}}
{{- end -}}
{{- $ports := list -}}
{{- range compact $addresses -}}
{{- $address := trim (toString .) -}}
{{- $scheme := regexFind "^[a-zA-Z0-9]+://" $address | lower -}}
{{- $server := regexReplaceAll "^([a-zA-Z0-9]+://)?([^/?#]*@)?([^/?#]*)(?s:.*)$" $address "${3}" -}}
{{- $usual := get (dict "https://" "443" "socks5://" "1080" "socks5h://" "1080") $scheme | default "80" -}}
{{- $ports = append $ports (regexFind "[0-9]+$" (regexFind ":[0-9]+$" $server) | default $usual | int) -}}
{{- end -}}
{{- $restricts := eq (toString (get (get $values "netpol" | default dict) "enabled")) "true" -}}
{{- $open := ternary (list 443 6443) (list 443) (empty (index . 0).Values.networkPolicy.apiServer.cidrs) -}}
https: {{ or (has 443 $ports) (and $any $restricts) }}
{{- range $open }}{{ $ports = without $ports . }}{{ end }}
any: {{ and $any (not $restricts) }}
ports: {{ ternary list (uniq $ports) $restricts | toJson }}
{{- end }}
