package workload

import "testing"

func TestVolumesAreReadByTheKeysThatAreMounted(t *testing.T) {
	const db, app, tls = "{name: s, secret: {secretName: db}}", "{name: c, configMap: {name: app}}", "{key: tls.crt, path: crt}, {key: tls.key, path: key}"
	tests := []struct {
		// mounts are those of the one container, and volumes those of the pod.
		name, mounts, volumes string
		want                  []Reference
	}{
		{"volumes without items read all keys", "{name: s}, {name: c}", db + ", " + app, []Reference{configMap("app"), secret("db")}},
		{
			"a volume that is not mounted is read like one that is, but pods start without its keys", "",
			db + ", {name: c, configMap: {name: app, items: [{key: level, path: level}]}}",
			[]Reference{requires(configMap("app", "level")), secret("db")},
		},
		{
			"a projected volume reads each of its sources", "{name: all}",
			"{name: all, projected: {sources: [{secret: {name: db}}, {secret: {name: tls, items: [{key: tls.crt, path: crt}]}}, " +
				"{configMap: {name: app, optional: true}}, {configMap: {name: ca, items: [{key: ca.crt, path: ca}]}}, {serviceAccountToken: {path: token}}]}}",
			[]Reference{optional(configMap("app")), configMap("ca", "ca.crt"), secret("db"), secret("tls", "tls.crt")},
		},
		{
			"a subPath names the key of a volume without items", "{name: s, subPath: password}, {name: c, subPath: ./app.conf}", db + ", " + app,
			[]Reference{requires(configMap("app", "app.conf")), requires(secret("db", "password"))},
		},
		{"a subPath through the links of the kubelet reads all keys", "{name: s, subPath: ..data/a}", db, []Reference{secret("db")}},
		{
			"a subPath is the path of an item where there are items", "{name: s, subPath: crt}", "{name: s, secret: {secretName: tls, items: [" + tls + "]}}",
			[]Reference{requires(secret("tls", "tls.crt"), "tls.crt", "tls.key")},
		},
	}
	var rows []referenceTest
	for _, test := range tests {
		spec := "{containers: [{name: app, volumeMounts: [" + test.mounts + "]}], volumes: [" + test.volumes + "]}"
		rows = append(rows, referenceTest{test.name, spec, test.want})
	}
	runReferenceTests(t, append(rows, []referenceTest{
		{
			name: "a volume that no container mounts does not make an optional source necessary",
			spec: `
containers: [{name: app, envFrom: [{secretRef: {name: db, optional: true}}, {configMapRef: {name: app}}]}]
volumes: [{name: s, secret: {secretName: db}}, {name: c, configMap: {name: app, optional: true}}]`,
			want: []Reference{configMap("app"), optional(secret("db"))},
		},
		{
			name: "the subPaths of all containers count",
			spec: `
initContainers: [{name: init, volumeMounts: [{name: s, mountPath: /a, subPath: a}]}]
containers: [{name: app, volumeMounts: [{name: s, mountPath: /b, subPath: b}]}]
ephemeralContainers: [{name: debug, volumeMounts: [{name: s, mountPath: /c, subPath: c}]}]
volumes: [{name: s, secret: {secretName: db}}]`,
			want: []Reference{requires(secret("db", "a", "b", "c"))},
		},
	}...))
}
