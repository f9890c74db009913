package instrument

import (
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

func TestLabelsAreMadeOnce(t *testing.T) {
	var made []string
	labels := NewLabels(func(kind string) []attribute.KeyValue {
		made = append(made, kind)
		return []attribute.KeyValue{attribute.String("kind", kind)}
	})
	for _, kind := range []string{"secret", "configmap", "secret", "configmap"} {
		set := metric.NewAddConfig([]metric.AddOption{labels.Of(kind)}).Attributes()
		if got, _ := set.Value("kind"); got.AsString() != kind {
			t.Errorf("the label is %q, want %q", got.AsString(), kind)
		}
	}
	if want := []string{"secret", "configmap"}; !slices.Equal(made, want) {
		t.Errorf("made were %v, want %v", made, want)
	}
}
