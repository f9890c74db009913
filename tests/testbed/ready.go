package testbed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// ready waits until a server that was started serves.
type ready func(ctx context.Context) error

// launch starts a server of the control plane, and remembers it for Stop. It replaces a server of the same name that has
// ended, in the same place of the order.
func (cp *ControlPlane) launch(name string, args ...string) (*process.Process, error) {
	return cp.launchWith(nil, name, args...)
}

// launchWith is like [ControlPlane.launch], with additional environment variables.
func (cp *ControlPlane) launchWith(env []string, name string, args ...string) (*process.Process, error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	place := slices.IndexFunc(cp.running, func(p *process.Process) bool { return p.Name() == name })
	switch {
	case cp.stopped:
		return nil, fmt.Errorf("start %s: the control plane was stopped", name)
	case place >= 0 && !cp.running[place].Ended():
		return nil, fmt.Errorf("start %s: it is running", name)
	}
	log := name + ".log"
	if cp.starts++; place >= 0 {
		log = fmt.Sprintf("%s-%d.log", name, cp.starts) // the log of the previous process may say why it ended
	}
	p, err := process.Start(process.Options{
		Name: name, Path: cp.binaries[name], Args: args, LogFile: filepath.Join(cp.dir, log),
		// Some servers look for configuration in the home directory, and a developer's home may have some.
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

// healthy waits, with [process.Process.WaitFor], until a URL of a server responds with 200.
func (cp *ControlPlane) healthy(ctx context.Context, p *process.Process, url string) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cp.config.CAData)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	return p.WaitFor(ctx, func(ctx context.Context) error { return cp.probe(ctx, client, url) })
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
