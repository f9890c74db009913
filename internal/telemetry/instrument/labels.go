package instrument

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Labels are the attributes of measurements, by what they are made of. Each set is made once, and not for each measurement. There are few, because
// no label names an object. It is safe for concurrent use.
type Labels[K comparable] struct {
	attributes func(K) []attribute.KeyValue

	mu   sync.RWMutex
	made map[K]metric.MeasurementOption
}

// NewLabels returns the labels that a function makes, always the same of the same.
func NewLabels[K comparable](attributes func(K) []attribute.KeyValue) *Labels[K] {
	return &Labels[K]{attributes: attributes, made: make(map[K]metric.MeasurementOption)}
}

// Of returns the attributes of one measurement.
func (l *Labels[K]) Of(key K) metric.MeasurementOption {
	l.mu.RLock()
	label, ok := l.made[key]
	l.mu.RUnlock()
	if ok {
		return label
	}
	label = metric.WithAttributeSet(attribute.NewSet(l.attributes(key)...))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made[key] = label
	return label
}
