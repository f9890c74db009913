package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// maxAnswer is the maximum number of response bytes that are read. Responses of Probes are shorter.
const maxAnswer = 16 << 10

// Await requests /readyz at each address of each host, such as those of the pods behind a headless Service, and repeats that at each interval
// until all are ready. Each host must have a port. If the context ends first, the error has the response of each address that is not ready.
func Await(ctx context.Context, interval time.Duration, hosts ...string) error {
	var last error
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		var failed []error
		for _, host := range hosts {
			failed = append(failed, ready(ctx, client, host))
		}
		err := errors.Join(failed...)
		// Errors caused by the end of the context are less specific than earlier responses.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return cmp.Or(last, err)
	}
	return nil
}

func ready(ctx context.Context, client *http.Client, hostport string) error {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return err
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return err
	}
	var failed []error
	for _, address := range addresses {
		if err := ask(ctx, client, net.JoinHostPort(address, port)); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", hostport, err))
		}
	}
	return errors.Join(failed...)
}

// ask returns an error with the response if an address is not ready.
func ask(ctx context.Context, client *http.Client, address string) error {
	probe := url.URL{Scheme: "http", Host: address, Path: "/readyz"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, probe.String(), http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it has been read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil || response.StatusCode == http.StatusOK {
		return err
	}
	return fmt.Errorf("%s is not ready: %s", address, strings.ReplaceAll(strings.TrimSpace(string(body)), "\n", "; "))
}
