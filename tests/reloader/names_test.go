package reloader

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// newKeys are other keys of annotations, by the flags that set them.
var newKeys = map[string]string{
	"auto-annotation":                  "example.com/auto",
	"configmap-annotation":             "example.com/configmaps",
	"secret-annotation":                "example.com/secrets",
	"configmap-auto-annotation":        "example.com/configmap-auto",
	"secret-auto-annotation":           "example.com/secret-auto",
	"auto-search-annotation":           "example.com/search",
	"search-match-annotation":          "example.com/match",
	"ignore-annotation":                "example.com/ignore",
	"pause-deployment-annotation":      "example.com/pause-period",
	"pause-deployment-time-annotation": "example.com/paused-at",
}

func TestTheKeyOfEachAnnotationIsThatOfItsFlag(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const (
		defaultAuto = "reloader.stakater.com/auto"
		pausedAt    = "deployment.reloader.stakater.com/paused-at"
	)
	on := func(key string) map[string]string { return map[string]string{key: "true"} }
	ours := on(newKeys["auto-annotation"])
	paused := maps.Clone(ours)
	paused[newKeys["pause-deployment-annotation"]] = "10m"
	cases := []struct {
		name                   string
		annotations, ofSources map[string]string
		read                   func(template *corev1.PodTemplateSpec, source string)
		change                 string
		rolls                  bool
	}{
		{"auto", ours, nil, readsSecret, "secret", true},
		{"auto-default", on(defaultAuto), nil, readsSecret, "secret", false},
		{"configmap", map[string]string{newKeys["configmap-annotation"]: "configmap"}, nil, readsNothing, "configmap", true},
		{"configmap-default", map[string]string{"configmap.reloader.stakater.com/reload": "configmap-default"}, nil, readsNothing, "configmap", false},
		{"secret", map[string]string{newKeys["secret-annotation"]: "secret"}, nil, readsNothing, "secret", true},
		{"secret-default", map[string]string{"secret.reloader.stakater.com/reload": "secret-default"}, nil, readsNothing, "secret", false},
		{"configmap-auto", on(newKeys["configmap-auto-annotation"]), nil, readsConfigMap, "configmap", true},
		{"configmap-auto-default", on("configmap.reloader.stakater.com/auto"), nil, readsConfigMap, "configmap", false},
		{"secret-auto", on(newKeys["secret-auto-annotation"]), nil, readsSecret, "secret", true},
		{"secret-auto-default", on("secret.reloader.stakater.com/auto"), nil, readsSecret, "secret", false},
		{"search", on(newKeys["auto-search-annotation"]), on(newKeys["search-match-annotation"]), readsSecret, "secret", true},
		{"search-default", on("reloader.stakater.com/search"), on(newKeys["search-match-annotation"]), readsSecret, "secret", false},
		{"match-default", on(newKeys["auto-search-annotation"]), on("reloader.stakater.com/match"), readsSecret, "secret", false},
		{"ignore", ours, on(newKeys["ignore-annotation"]), readsSecret, "secret", false},
		{"ignore-default", ours, on("reloader.stakater.com/ignore"), readsSecret, "secret", true},
		{"pause", paused, nil, readsSecret, "secret", false},
	}
	for _, c := range cases {
		r.sources(c.name, "one", c.ofSources)
		r.deploy(c.name, c.annotations, func(template *corev1.PodTemplateSpec) { c.read(template, c.name) })
	}
	var flags []string
	for _, name := range slices.Sorted(maps.Keys(newKeys)) {
		flags = append(flags, "--"+name, newKeys[name])
	}
	r.placeSentinels(ours)
	r.start(flags...)
	before := make(map[string]int64)
	for _, c := range cases {
		before[c.name] = r.writes(c.name)
		r.change(c.name, c.change, "two")
	}
	for _, c := range cases {
		if c.rolls {
			r.awaitRoll(c.name, before[c.name])
		}
	}
	r.passSentinels()
	for _, c := range cases {
		if rolled := r.writes(c.name) > before[c.name]; rolled != c.rolls {
			t.Errorf("%s was rolled: got %t, want %t", c.name, rolled, c.rolls)
		}
	}
	annotations := r.deployment("pause").Annotations
	if annotations[newKeys["pause-deployment-time-annotation"]] == "" || annotations[pausedAt] != "" {
		t.Errorf("the annotations of the paused Deployment are %v", annotations)
	}
}
