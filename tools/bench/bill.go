package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

const (
	// idleLook is how long the control plane is watched before a sample. What it uses while nothing happens is no part of the bill.
	idleLook = 10 * time.Second
	// eventsRest is how long no Kubernetes Event must have been written until all are: longer than a program holds one back. The API server spends
	// some time on its counts, so they are read only every eventsLook.
	eventsRest = 15 * time.Second
	eventsLook = 5 * time.Second
	// ofRequest is appended to a name, before the verb and the resource, for the number of requests of all clients.
	ofRequest = ", request "
)

// bill is what a sample of the fan-out costs: processor time of the control plane and of the process that patches, and requests.
type bill struct {
	servers, patchers             []*process.Process
	serversBefore, patchersBefore []time.Duration
	// idle is what each server uses in a second in which nothing happens.
	idle     []time.Duration
	began    time.Time
	requests map[string]float64
}

// openBill begins a bill, after it has watched the control plane do nothing.
func (f *fan) openBill(ctx context.Context, c contender) (*bill, error) {
	b := &bill{servers: f.cp.Processes(), patchers: patching(c)}
	before, err := used(b.servers)
	if err != nil {
		return nil, err
	}
	if err := testbed.Sleep(ctx, idleLook); err != nil {
		return nil, err
	}
	if b.requests, err = f.countedRequests(ctx); err != nil {
		return nil, err
	}
	if b.serversBefore, err = used(b.servers); err != nil {
		return nil, err
	}
	for i, now := range b.serversBefore {
		b.idle = append(b.idle, time.Duration(float64(now-before[i])/idleLook.Seconds()))
	}
	b.began = time.Now()
	b.patchersBefore, err = used(b.patchers)
	return b, err
}

// closeBill waits until the last Kubernetes Event is written, and returns what each of n Deployments has cost: in ms, or a number of requests, by
// what is appended to the name of a way.
func (f *fan) closeBill(ctx context.Context, b *bill, n int) (map[string]float64, error) {
	requests, err := f.whenEventsAreWritten(ctx)
	if err != nil {
		return nil, err
	}
	servers, err := used(b.servers)
	if err != nil {
		return nil, err
	}
	patchers, err := used(b.patchers)
	if err != nil {
		return nil, err
	}
	took, costs := time.Since(b.began).Seconds(), make(map[string]float64)
	costs[cpuOfPatching] = milliseconds(sum(patchers)-sum(b.patchersBefore)) / float64(n)
	for i, server := range b.servers {
		each := (milliseconds(servers[i]-b.serversBefore[i]) - took*milliseconds(b.idle[i])) / float64(n)
		costs[ofServers+", "+server.Name()] = each
		costs[ofServers] += each
	}
	for name, count := range requests {
		costs[ofRequest+name] = (count - b.requests[name]) / float64(n)
	}
	return costs, nil
}

// whenEventsAreWritten waits until no Kubernetes Event has been written for a while, and returns the requests until then.
func (f *fan) whenEventsAreWritten(ctx context.Context) (map[string]float64, error) {
	var requests map[string]float64
	last, since := -1.0, time.Now()
	err := wait.PollUntilContextTimeout(ctx, eventsLook, f.observer.patience, true, func(ctx context.Context) (done bool, err error) {
		if requests, err = f.countedRequests(ctx); err != nil {
			return false, err
		}
		if written := requests["POST events"] + requests["PATCH events"] + requests["PUT events"]; written != last {
			last, since = written, time.Now()
		}
		return time.Since(since) >= eventsRest, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting until all kubernetes events are written: %w", err)
	}
	return requests, nil
}

// countedRequests returns how many requests the API server has answered, by verb and resource.
func (f *fan) countedRequests(ctx context.Context) (map[string]float64, error) {
	text, err := f.cluster.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the API server: %w", err)
	}
	return parseRequests(string(text))
}

// metricLabel matches a label of a metric and its value. None of those that are read here has a quotation mark in its value.
var metricLabel = regexp.MustCompile(`(\w+)="([^"]*)"`)

// parseRequests returns the sums of apiserver_request_total by verb and resource, such as "PATCH deployments" or "PUT pods/status". It leaves out
// watches, which are counted where they end, and what is no resource.
func parseRequests(metrics string) (map[string]float64, error) {
	requests := make(map[string]float64)
	for line := range strings.Lines(metrics) {
		rest, ok := strings.CutPrefix(line, "apiserver_request_total{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(rest, "} ")
		n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return nil, fmt.Errorf("reading the metrics of the API server: %w", err)
		}
		of := make(map[string]string)
		for _, label := range metricLabel.FindAllStringSubmatch(labels, -1) {
			of[label[1]] = label[2]
		}
		if of["resource"] == "" || of["verb"] == "WATCH" {
			continue
		}
		name := of["verb"] + " " + of["resource"]
		if of["subresource"] != "" {
			name += "/" + of["subresource"]
		}
		requests[name] += n
	}
	return requests, nil
}
