package workload

import "testing"

func TestVolumesAreReadByTheKeysThatAreMounted(t *testing.T) {
	runReferenceTests(t, []referenceTest{
		{
			name: "volumes without items read all keys",
			spec: `
containers:
- name: app
  volumeMounts: [{name: s, mountPath: /s}, {name: c, mountPath: /c}]
volumes:
- {name: s, secret: {secretName: db}}
- {name: c, configMap: {name: app}}`,
			want: []Reference{configMap("app"), secret("db")},
		},
		{
			name: "volumes can be optional",
			spec: `
containers: [{name: app}]
volumes:
- {name: s, secret: {secretName: db, optional: true}}
- {name: c, configMap: {name: app, optional: true}}`,
			want: []Reference{optional(configMap("app")), optional(secret("db"))},
		},
		{
			name: "a volume that no container mounts is read like one that is, but pods start without its keys",
			spec: `
containers: [{name: app}]
volumes:
- {name: s, secret: {secretName: db}}
- {name: c, configMap: {name: app, items: [{key: level, path: level}]}}`,
			want: []Reference{requires(configMap("app", "level")), secret("db")},
		},
		{
			name: "a volume that no container mounts requires no keys beside one that is mounted",
			spec: `
containers: [{name: app, volumeMounts: [{name: tls, mountPath: /tls}]}]
volumes:
- {name: ca, secret: {secretName: tls, items: [{key: ca.crt, path: ca}]}}
- {name: tls, secret: {secretName: tls, items: [{key: tls.crt, path: crt}]}}`,
			want: []Reference{requires(secret("tls", "ca.crt", "tls.crt"), "tls.crt")},
		},
		{
			name: "a volume that no container mounts does not make an optional source necessary",
			spec: `
containers: [{name: app, envFrom: [{secretRef: {name: db, optional: true}}, {configMapRef: {name: app}}]}]
volumes:
- {name: s, secret: {secretName: db}}
- {name: c, configMap: {name: app, optional: true}}
- {name: p, projected: {sources: [{secret: {name: db, items: [{key: a, path: a}]}}]}}`,
			want: []Reference{configMap("app"), optional(secret("db"))},
		},
		{
			name: "a projected volume reads each of its sources",
			spec: `
containers: [{name: app, volumeMounts: [{name: all, mountPath: /all}]}]
volumes:
- name: all
  projected:
    sources:
    - {secret: {name: db}}
    - {secret: {name: tls, items: [{key: tls.crt, path: crt}]}}
    - {configMap: {name: app, optional: true}}
    - {configMap: {name: ca, items: [{key: ca.crt, path: ca}]}}
    - {serviceAccountToken: {path: token}}
    - {downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}`,
			want: []Reference{optional(configMap("app")), configMap("ca", "ca.crt"), secret("db"), secret("tls", "tls.crt")},
		},
		{
			name: "a subPath names the key of a volume without items",
			spec: `
containers:
- name: app
  volumeMounts:
  - {name: s, mountPath: /s/password, subPath: password}
  - {name: c, mountPath: /c/app.conf, subPath: ./app.conf}
volumes:
- {name: s, secret: {secretName: db}}
- {name: c, configMap: {name: app}}`,
			want: []Reference{requires(configMap("app", "app.conf")), requires(secret("db", "password"))},
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
		{
			name: "a subPath that is not known before the pod runs reads all keys",
			spec: `
containers:
- name: app
  volumeMounts: [{name: s, mountPath: /a, subPath: a}, {name: s, mountPath: /b, subPathExpr: $(POD_NAME)}]
volumes: [{name: s, secret: {secretName: db}}]`,
			want: []Reference{secret("db")},
		},
		{
			name: "a subPath through the links of the kubelet reads all keys",
			spec: `
containers: [{name: app, volumeMounts: [{name: s, mountPath: /a, subPath: ..data/a}]}]
volumes: [{name: s, secret: {secretName: db}}]`,
			want: []Reference{secret("db")},
		},
		{
			name: "a subPath is the path of an item where there are items",
			spec: `
containers: [{name: app, volumeMounts: [{name: s, mountPath: /crt, subPath: certs/crt}]}]
volumes:
- name: s
  secret: {secretName: tls, items: [{key: tls.crt, path: certs/crt}, {key: tls.key, path: certs/key}]}`,
			want: []Reference{requires(secret("tls", "tls.crt"), "tls.crt", "tls.key")},
		},
		{
			name: "a subPath that is a folder reads the items in it",
			spec: `
containers: [{name: app, volumeMounts: [{name: s, mountPath: /certs, subPath: certs/}]}]
volumes:
- name: s
  secret:
    secretName: tls
    items: [{key: tls.crt, path: certs/crt}, {key: tls.key, path: certs/key}, {key: ca, path: certs-ca}]`,
			want: []Reference{requires(secret("tls", "tls.crt", "tls.key"), "ca", "tls.crt", "tls.key")},
		},
		{
			name: "a subPath of a projected volume reads the items that it reaches",
			spec: `
containers: [{name: app, volumeMounts: [{name: all, mountPath: /crt, subPath: crt}]}]
volumes:
- name: all
  projected:
    sources:
    - {secret: {name: tls, items: [{key: tls.crt, path: crt}, {key: tls.key, path: key}]}}
    - {configMap: {name: app}}`,
			want: []Reference{requires(configMap("app", "crt")), requires(secret("tls", "tls.crt"), "tls.crt", "tls.key")},
		},
	})
}
