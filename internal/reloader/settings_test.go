package reloader

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSettingsAreReadFromOneText(t *testing.T) {
	wrong := func(name string) string {
		return `--reloader: "` + name + `", want any of on, strategy=env-vars, metrics, a name of an annotation with its key, and last webhook-url=URL`
	}
	for _, tt := range []struct {
		name, text string
		want       Settings
		shown, err string
	}{
		{name: "nothing"},
		{name: "the mode alone", text: "on", want: Settings{On: true}, shown: "on"},
		{
			name: "all of it", text: "metrics,strategy=env-vars,secret-annotation=a/b,auto-annotation=c/d,on",
			want: Settings{
				On: true, Strategy: StrategyVariables, Metrics: true, Annotations: map[string]string{"secret-annotation": "a/b", "auto-annotation": "c/d"},
			},
			shown: "on,strategy=env-vars,metrics,auto-annotation=c/d,secret-annotation=a/b",
		},
		{
			name: "an address is the last, with its commas, and is not shown", text: "on,webhook-url=https://example.com/a,b?token=c,on",
			want: Settings{On: true, WebhookURL: "https://example.com/a,b?token=c,on"}, shown: "on,webhook-url=...",
		},
		{
			name: "the value of another version, and words that are near", text: "true,metrics=true,strategy,on=",
			want: Settings{Unknown: []string{"true", "metrics", "strategy", "on"}},
			err:  wrong("true") + "\n" + wrong("metrics") + "\n" + wrong("strategy") + "\n" + wrong("on"),
		},
		{
			name: "a strategy that is none", text: "on,strategy=default", want: Settings{On: true, Strategy: "default"}, shown: "on,strategy=default",
			err: `--reloader: strategy: "default", want annotations or env-vars`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Settings{On: true, Metrics: true} // of an earlier text
			testkit.Must(t, got.Set(tt.text))
			testkit.WantEqual(t, "settings", tt.want, got)
			if got.String() != tt.shown {
				t.Errorf("shown as %q, want %q", got.String(), tt.shown)
			}
			testkit.WantError(t, got.Validate(), tt.err)
		})
	}
}
