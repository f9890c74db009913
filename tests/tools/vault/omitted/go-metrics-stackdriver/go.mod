module github.com/google/go-metrics-stackdriver

go 1.26.0

require github.com/armon/go-metrics v0.4.1
