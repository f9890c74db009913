package testbed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"time"
)

// ready waits until something that was started serves.
type ready func(ctx context.Context) error

// launch starts a server of the control plane and remembers it for Stop. A server that has ended is replaced, and keeps
// its place in the order.
func (cp *ControlPlane) launch(name string, args ...string) (*Process, error) {
	return cp.launchWith(nil, name, args...)
}

// launchWith is [ControlPlane.launch] with additions to the environment.
func (cp *ControlPlane) launchWith(env []string, name string, args ...string) (*Process, error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	place := slices.IndexFunc(cp.running, func(p *Process) bool { return p.name == name })
	switch {
	case cp.stopped:
		return nil, fmt.Errorf("start %s: the control plane was stopped", name)
	case place >= 0 && !cp.running[place].ended():
		return nil, fmt.Errorf("start %s: it is running", name)
	}
	log := name + ".log"
	if cp.starts++; place >= 0 {
		log = fmt.Sprintf("%s-%d.log", name, cp.starts) // The log of the one before may say why it had to go.
	}
	p, err := StartProcess(ProcessOptions{
		Name: name, Path: cp.binaries[name], Args: args, LogFile: filepath.Join(cp.dir, log),
		// Some servers look for configuration at home, and the home of a developer has some.
		Env: append([]string{"HOME=" + cp.dir}, env...),
	})
	if err != nil {
		return nil, err
	}
	if place >= 0 {
		cp.running[place] = p
	} else {
		cp.running = append(cp.running, p)
	}
	return p, nil
}

// healthy waits until a URL of a server answers 200, as [Process.waitFor] does.
func (cp *ControlPlane) healthy(ctx context.Context, p *Process, url string) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cp.config.CAData)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	return p.waitFor(ctx, func(ctx context.Context) error { return cp.probe(ctx, client, url) })
}

// waitFor waits until a probe of the process finds nothing wrong. It gives up as soon as the process has ended, and its
// error holds the end of the process's log either way.
func (p *Process) waitFor(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%s: %w\n%s", p.name, ErrExited, tail([]byte(p.Output())))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", p.name, errors.Join(ctx.Err(), err), tail([]byte(p.Output())))
		case <-ticker.C:
		}
	}
}

func (cp *ControlPlane) probe(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+cp.tokens[adminUser])
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	return nil
}
