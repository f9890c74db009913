package chart

import "slices"

// reloaderValue is what becomes of one value of Reloader's chart.
type reloaderValue struct {
	// path is the value's, value is another than the default, and with are paths and values that it needs.
	path, value, with string
	// want is a line of the manifests that is there with the value alone; "gone: " and one that is there without it; "so anyway: " and one that
	// is there in either case, if nothing changes; or "refused: " and what is said about the path.
	want string
}

const (
	instead  = " which Keyturn does not have; use instead: "
	measured = "reloader.verticalPodAutoscaler.enabled: true"
	limited  = "reloader.netpol.enabled: true"
	serving  = "reloader.service.port: 9090"
)

// reloaderValues has all of them.
var reloaderValues = slices.Concat(plainValues,
	probeValues("livenessProbe", "1"), // Kubernetes allows no other.
	probeValues("readinessProbe", "8"),
	monitorValues("serviceMonitor", "bearerTokenFile", "/t", "targetLabels"),
	monitorValues("podMonitor", "bearerTokenSecret", "{name: a}", "podTargetLabels"),
)

// plainValues are those that stand for themselves.
var plainValues = []reloaderValue{
	{"global.imageRegistry", "reg.example.com", "", "image: reg.example.com/keyturn/keyturn:devel"},
	{"global.imagePullSecrets", "[mine]", "", "imagePullSecrets:\n- name: mine"},
	{"kubernetes.host", "https://k.example.com", "", "so anyway: kind: StatefulSet"}, // Reloader's chart does not read it.
	{"namespace", "tools", "", `refused: is "tools",` + instead + "helm --namespace"},
	{"nameOverride", "x", "", `refused: is "x",` + instead + "fullnameOverride"},
	{"fullnameOverride", "x", "", "name: x-watcher"},
	{"image.name", "mirror/reloader", "", `refused: is "mirror/reloader",` + instead + "image.repository"},
	{"image.repository", "reg.example.com/keyturn", "", "image: reg.example.com/keyturn:v1.4.21"},
	{"image.tag", "v2", "image.repository: keyturn", "image: keyturn:v2"},
	{
		"image.digest", "sha256:" + digest, "image.repository: keyturn",
		"image: keyturn@sha256:" + digest,
	},
	{"image.pullPolicy", "Always", "", "imagePullPolicy: Always"},

	{"reloader.autoReloadAll", "true", "", `KEYTURN_ROLL_ALL: "true"`},
	{"reloader.isArgoRollouts", "true", "", "KEYTURN_WORKLOAD_KINDS: deployment,statefulset,daemonset,cronjob,rollout"},
	{"reloader.isOpenshift", "true", "", "gone: fsGroup: 65532"},
	{"reloader.ignoreSecrets", "true", "", "KEYTURN_SOURCES: configmap"},
	{"reloader.ignoreConfigMaps", "true", "", "KEYTURN_SOURCES: secret"},
	{"reloader.ignoreJobs", "true", "", "KEYTURN_JOBS: start"},
	{"reloader.ignoreCronJobs", "true", "", "KEYTURN_WORKLOAD_KINDS: deployment,statefulset,daemonset"},
	{"reloader.reloadOnCreate", "true", "", "KEYTURN_ROLL_ON_CREATE: always"},
	{"reloader.reloadOnDelete", "true", "", `KEYTURN_ROLL_ON_DELETE: "true"`},
	{"reloader.syncAfterRestart", "true", "", "so anyway: kind: StatefulSet"}, // The stream has what was seen before.
	{"reloader.reloadStrategy", "annotations", "", "KEYTURN_RELOADER: on,metrics,strategy=annotations"},
	{"reloader.ignoreNamespaces", "a", "", "KEYTURN_IGNORE_NAMESPACES: a"},
	{"reloader.namespaceSelector", "a=b", "", "KEYTURN_NAMESPACE_SELECTOR: a=b"},
	{"reloader.resourceLabelSelector", "a=b", "", "KEYTURN_SELECTOR: a=b"},
	{"reloader.logFormat", "text", "", "- --log-format=text"},
	{"reloader.logLevel", "debug", "", "KEYTURN_LOG_LEVEL: debug"},
	{"reloader.watchGlobally", "false", "", "KEYTURN_NAMESPACES: keyturn-system"},
	{"reloader.namespaces", "[a]", "reloader.watchGlobally: false", "KEYTURN_NAMESPACES: keyturn-system,a"},
	{"reloader.enableHA", "true", "", "refused: is true," + instead + "actuator.replicas: 3, or nats.url with two actuators"},
	{"reloader.enablePProf", "true", "", "refused: is true," + instead + "the metrics and traces"},
	{"reloader.enableCSIIntegration", "true", "", "KEYTURN_SOURCES: secret,configmap,secretproviderclass"},
	{"reloader.pprofAddr", ":7070", "", "so anyway: kind: StatefulSet"}, // It means nothing without enablePProf.
	{"reloader.readOnlyRootFileSystem", "true", "", "so anyway: readOnlyRootFilesystem: true"},
	{"reloader.legacy.rbac", "true", "", "refused: is true," + instead + "rbac.authorization.k8s.io/v1"},
	{"reloader.matchLabels", "{team: x}", "", "team: x"},
	{"reloader.enableMetricsByNamespace", "true", "", "so anyway: KEYTURN_RELOADER: on,metrics,strategy=env-vars"},

	{"reloader.deployment.dnsConfig", "{searches: [a]}", "", "dnsConfig:\nsearches:\n- a"},
	{"reloader.deployment.replicas", "2", "", "refused: is 2," + instead + "watcher.replicas and actuator.replicas"},
	{"reloader.deployment.revisionHistoryLimit", "7", "", "revisionHistoryLimit: 7"},
	{"reloader.deployment.hostUsers", "false", "", "hostUsers: false"},
	{"reloader.deployment.nodeSelector", "{disk: ssd}", "", "nodeSelector:\ndisk: ssd"},
	{"reloader.deployment.affinity", "{podAffinity: {}}", "", "affinity:\npodAffinity: {}"},
	{"reloader.deployment.volumeMounts", "[{name: v, mountPath: /v}]", "", "- mountPath: /v\nname: v"},
	{"reloader.deployment.volumes", "[{name: v, emptyDir: {}}]", "", "- emptyDir: {}\nname: v"},
	{"reloader.deployment.securityContext.runAsNonRoot", "false", "", "so anyway: runAsNonRoot: true"},
	{"reloader.deployment.securityContext.runAsUser", "1000", "", "runAsUser: 1000"},
	{"reloader.deployment.securityContext.seccompProfile.type", "Unconfined", "", "type: Unconfined"},
	{"reloader.deployment.containerSecurityContext", "{runAsUser: 1000}", "", "runAsUser: 1000"},
	{"reloader.deployment.tolerations", "[{key: a}]", "", "- key: a"},
	{"reloader.deployment.topologySpreadConstraints", "[{topologyKey: zone}]", "", "topologyKey: zone"},
	{"reloader.deployment.annotations", "{team: x}", "", "annotations:\nteam: x"},
	{"reloader.deployment.labels.provider", "mine", "", "provider: mine"},
	{"reloader.deployment.labels.group", "g", "reloader.deployment.labels.provider: mine", "group: g"},
	{"reloader.deployment.labels.version", "v9", "reloader.deployment.labels.provider: mine", "version: v9"},
	{"reloader.deployment.env.open", "{HTTPS_PROXY: 'http://p:3128'}", "", "- name: HTTPS_PROXY\nvalue: http://p:3128"},
	{"reloader.deployment.env.secret", "{ALERT_SINK: slack}", "", "- name: ALERT_SINK\nvalueFrom:\nsecretKeyRef:\nkey: ALERT_SINK\nname: keyturn-reloader"},
	{"reloader.deployment.env.field", "{NODE: spec.nodeName}", "", "- name: NODE\nvalueFrom:\nfieldRef:\nfieldPath: spec.nodeName"},
	{"reloader.deployment.env.existing", "{mine: {ALERT_SINK: sink}}", "", "- name: ALERT_SINK\nvalueFrom:\nsecretKeyRef:\nkey: sink\nname: mine"},
	{"reloader.deployment.resources", "{limits: {cpu: 123m}}", "", "cpu: 123m"},
	{"reloader.deployment.pod.annotations", "{team: x}", "", "team: x"},
	{"reloader.deployment.priorityClassName", "high", "", "priorityClassName: high"},
	{"reloader.deployment.runtimeClassName", "gvisor", "", "runtimeClassName:\ngvisor"},
	{"reloader.deployment.schedulerName", "mine", "", "schedulerName:\nmine"},
	{"reloader.deployment.imagePullSecrets", "[{name: mine}]", "", "imagePullSecrets:\n- name: mine"},
	{"reloader.deployment.automountServiceAccountToken", "false", "", "automountServiceAccountToken: false\n# Otherwise Kubernetes sets KEYTURN_NATS_PORT and the like for the Service, which look like our own variables."},
	{"reloader.deployment.gomaxprocsOverride", "2", "", "- name: GOMAXPROCS\nvalue: \"2\""},
	{"reloader.deployment.gomemlimitOverride", "100MiB", "", "- name: GOMEMLIMIT\nvalue: 100MiB"},

	{"reloader.service.labels", "{team: x}", serving, "team: x"},
	{"reloader.service.annotations", "{team: x}", serving, "team: x"},
	{"reloader.service.port", "9999", "", "port: 9999"},
	{"reloader.service.ipFamilyPolicy", "PreferDualStack", serving, "ipFamilyPolicy:\nPreferDualStack"},
	{"reloader.service.ipFamilies", "[IPv6]", serving, "ipFamilies:\n- IPv6"},
	{"reloader.rbac.enabled", "false", "", "gone: kind: ClusterRole"},
	{"reloader.rbac.labels", "{team: x}", "", "team: x"},
	{"reloader.serviceAccount.create", "false", "", "refused: is false," + instead + "watcher.serviceAccount and actuator.serviceAccount"},
	{"reloader.serviceAccount.labels", "{team: x}", "", "team: x"},
	{"reloader.serviceAccount.annotations", "{team: x}", "", "annotations:\nteam: x"},
	{"reloader.serviceAccount.name", "mine", "", "refused: is set," + instead + "watcher.serviceAccount.name and actuator.serviceAccount.name"},
	{"reloader.serviceAccount.automountServiceAccountToken", "false", "", "so anyway: automountServiceAccountToken: false"},
	{"reloader.custom_annotations.auto", "a/b", "", "KEYTURN_RELOADER: on,metrics,strategy=env-vars,auto-annotation=a/b"},
	{"reloader.custom_annotations.configmap", "a/b", "", "KEYTURN_RELOADER: on,metrics,strategy=env-vars,configmap-annotation=a/b"},
	{"reloader.custom_annotations.configmap_auto", "a/b", "", "KEYTURN_RELOADER: on,metrics,strategy=env-vars,configmap-auto-annotation=a/b"},
	{"reloader.custom_annotations.secret", "a/b", "", "KEYTURN_RELOADER: on,metrics,strategy=env-vars,secret-annotation=a/b"},
	{"reloader.custom_annotations.secret_auto", "a/b", "", "KEYTURN_RELOADER: on,metrics,strategy=env-vars,secret-auto-annotation=a/b"},
	{"reloader.custom_annotations.search", "a/b", "", "KEYTURN_RELOADER: on,metrics,strategy=env-vars,auto-search-annotation=a/b"},
	{"reloader.custom_annotations.match", "a/b", "", "KEYTURN_RELOADER: on,metrics,strategy=env-vars,search-match-annotation=a/b"},
	{"reloader.custom_annotations.ignore", "a/b", "", "KEYTURN_RELOADER: on,metrics,strategy=env-vars,ignore-annotation=a/b"},
	{"reloader.custom_annotations.pausePeriod", "a/b", "", "KEYTURN_RELOADER: on,metrics,strategy=env-vars,pause-deployment-annotation=a/b"},
	{"reloader.custom_annotations.pauseTime", "a/b", "", "KEYTURN_RELOADER: on,metrics,strategy=env-vars,pause-deployment-time-annotation=a/b"},

	{"reloader.podDisruptionBudget.enabled", "true", "", "kind: PodDisruptionBudget\nmetadata:\nname: keyturn-actuator"},
	{"reloader.podDisruptionBudget.minAvailable", "1", "reloader.podDisruptionBudget.enabled: true", "minAvailable: 1"},
	{"reloader.podDisruptionBudget.maxUnavailable", "50%", "reloader.podDisruptionBudget.enabled: true", "maxUnavailable: 50%"},
	{"reloader.netpol.enabled", "true", "reloader.webhookUrl: 'http://w.example.com:8083'", "gone: - port: 8083"},
	{"reloader.netpol.from", "[{podSelector: {}}]", limited, "from:\n- podSelector: {}"},
	{"reloader.netpol.to", "[{podSelector: {}}]", limited, "to:\n- podSelector: {}"},
	{"reloader.verticalPodAutoscaler.enabled", "true", "", "kind: VerticalPodAutoscaler"},
	{"reloader.verticalPodAutoscaler.recommenders", "[{name: a}]", measured, "recommenders:\n- name: a"},
	{"reloader.verticalPodAutoscaler.controlledResources", "[cpu]", measured, "controlledResources:\n- cpu"},
	{"reloader.verticalPodAutoscaler.controlledValues", "RequestsOnly", measured, "controlledValues:\nRequestsOnly"},
	{"reloader.verticalPodAutoscaler.maxAllowed", "{cpu: 123m}", measured, "maxAllowed:\ncpu: 123m"},
	{"reloader.verticalPodAutoscaler.minAllowed", "{cpu: 123m}", measured, "minAllowed:\ncpu: 123m"},
	{"reloader.verticalPodAutoscaler.updatePolicy.minReplicas", "1", measured, "minReplicas: 1"},
	{"reloader.verticalPodAutoscaler.updatePolicy.updateMode", "Initial", measured, "updateMode: Initial"},
	{"reloader.webhookUrl", "http://w.example.com:8083", "", "- name: KEYTURN_RELOADER\nvalueFrom:\nsecretKeyRef:\nkey: KEYTURN_RELOADER\nname: keyturn-reloader"},
}

// probeValues are those of a probe, with a valid successThreshold.
func probeValues(kind, success string) []reloaderValue {
	path := "reloader.deployment." + kind + "."
	return []reloaderValue{
		{path + "timeoutSeconds", "8", "", "timeoutSeconds: 8"},
		{path + "failureThreshold", "8", "", "failureThreshold: 8"},
		{path + "periodSeconds", "8", "", "periodSeconds: 8"},
		{path + "successThreshold", success, "", "successThreshold: " + success},
		{path + "initialDelaySeconds", "8", "", "initialDelaySeconds: 8"},
	}
}

// monitorValues are those of a kind of monitor, both of which become PodMonitors. In token and labels the kinds differ.
func monitorValues(kind, tokenField, token, labelsField string) []reloaderValue {
	path := "reloader." + kind + "."
	on := path + "enabled: true"
	return []reloaderValue{
		{path + "enabled", "true", "", "kind: PodMonitor"},
		{path + "namespace", "m", on, "namespace: m"},
		{path + "interval", "7s", on, "interval: 7s"},
		{path + "scheme", "https", on, "refused: is https," + instead + "http"},
		{path + "tlsConfig", "{insecureSkipVerify: true}", on, "refused: is set," + instead + "http"},
		{path + tokenField, token, on, "refused: is set," + instead + "networkPolicy.from"},
		{path + "timeout", "7s", on, "scrapeTimeout: 7s"},
		{path + "labels", "{team: x}", on, "team: x"},
		{path + "annotations", "{team: x}", on, "team: x"},
		{path + "honorLabels", "false", on, "honorLabels: false"},
		{path + "metricRelabelings", "[{action: keep}]", on, "metricRelabelings:\n- action: keep"},
		{path + "relabelings", "[{action: keep}]", on, "relabelings:\n- action: keep"},
		{path + labelsField, "[team]", on, "podTargetLabels:\n- team"},
	}
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
