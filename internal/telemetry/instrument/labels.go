package instrument

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Labels caches the attributes of measurements by a key. Each set is created only once, and not for each measurement. There are few sets, because
// no label names an object. Labels is safe for concurrent use.
type Labels[K comparable] struct {
	attributes func(K) []attribute.KeyValue

	mu   sync.RWMutex
	made map[K]metric.MeasurementOption
}

// NewLabels returns a cache of the attributes that a function returns. The function must return the same attributes for the same key.
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
