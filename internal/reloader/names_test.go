package reloader

import (
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestParseReturnsTheKeysOrAllThatIsWrong(t *testing.T) {
	const names = "auto-annotation, auto-search-annotation, configmap-annotation, configmap-auto-annotation, ignore-annotation, " +
		"pause-deployment-annotation, pause-deployment-time-annotation, search-match-annotation, secret-annotation, secret-auto-annotation"
	change := func(with func(*Annotations)) Annotations {
		keys := Default()
		with(&keys)
		return keys
	}
	tests := []struct {
		name  string
		given map[string]string
		want  Annotations
		err   string
	}{
		{name: "none are given", want: Default()},
		{
			name: "all are given", given: map[string]string{
				"auto-annotation": "a/1", "secret-auto-annotation": "a/2", "configmap-auto-annotation": "a/3", "secret-annotation": "a/4",
				"configmap-annotation": "a/5", "auto-search-annotation": "a/6", "search-match-annotation": "a/7", "ignore-annotation": "a/8",
				"pause-deployment-annotation": "a/9", "pause-deployment-time-annotation": "plain",
			},
			want: Annotations{"a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7", "a/8", "a/9", "plain"},
		},
		{name: "a name is unknown", given: map[string]string{"--auto-annotation": "example.org/auto"}, err: `--reloader: "--auto-annotation", want names of ` + names},
		{
			name: "each problem has a line", given: map[string]string{
				"auto-annotation": "", "match": "example.org/match", "ignore-annotation": "no spaces", "secret-annotation": "keyturn.dev/roll-on",
				"configmap-annotation": "example.org/" + strings.Repeat("x", 200),
			},
			err: `--reloader: auto-annotation: "", want the key of an annotation, such as example.org/reload` + "\n" +
				`--reloader: configmap-annotation: "example.org/` + strings.Repeat("x", 88) + `", want the key of an annotation, such as example.org/reload` + "\n" +
				`--reloader: ignore-annotation: "no spaces", want the key of an annotation, such as example.org/reload` + "\n" +
				`--reloader: "match", want names of ` + names + "\n" +
				`--reloader: secret-annotation: "keyturn.dev/roll-on", want a key that is not Keyturn's own`,
		},
		{
			name: "two names have one key", given: map[string]string{"auto-annotation": "a/b", "secret-annotation": "a/b", "search-match-annotation": "a/b"},
			err: `--reloader: auto-annotation and search-match-annotation: both are "a/b", want a key for each`,
		},
		{
			name: "names of sources have one key, which is that of auto, too", given: map[string]string{
				"configmap-annotation": Default().Auto, "secret-annotation": Default().Auto,
			},
			want: change(func(r *Annotations) { r.ConfigMap, r.Secret = r.Auto, r.Auto }),
		},
		{
			name: "auto of each kind has one key", given: map[string]string{
				"auto-annotation": "a/b", "configmap-auto-annotation": "a/b", "secret-auto-annotation": "a/b",
			},
			want: change(func(r *Annotations) { r.Auto, r.AutoConfigMap, r.AutoSecret = "a/b", "a/b", "a/b" }),
		},
		{
			name: "what Keyturn writes has one key with what opts in", given: map[string]string{
				"pause-deployment-time-annotation": "a/b", "secret-annotation": "a/b",
			},
			err: `--reloader: pause-deployment-time-annotation and secret-annotation: both are "a/b", want a key for each`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse(tt.given)
			testkit.WantError(t, err, tt.err)
			if err == nil && got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
