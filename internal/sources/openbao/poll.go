package openbao

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// The times of polling.
const (
	// minGap is the least time between two polls; polls that are asked for meanwhile are one.
	minGap = 500 * time.Millisecond
	// minRetry is the delay after the first poll of several that fail. It grows to the interval.
	minRetry = time.Second
	// scanAgain is how long a mount that cannot be scanned is listed instead.
	scanAgain = time.Hour
)

// poll polls the store from time to time, and soon when it is asked to, until ctx is done.
func (s *store) poll(ctx context.Context) {
	p := &poller{store: s, scanAfter: map[mount]time.Time{}}
	failed := 0
	for ctx.Err() == nil {
		began := s.options.Now()
		wait := s.jitter(s.config.interval)
		if p.all(ctx) {
			failed = 0
			s.status.polled(s.options.Now())
			s.metrics.poll(ctx, s.config.Name, "success")
		} else if ctx.Err() == nil {
			wait = min(minRetry<<min(failed, 16), s.config.interval)
			failed++
			s.metrics.poll(ctx, s.config.Name, "failure")
		}
		// Polls that are asked for take at most half of the time.
		if !pause(ctx, max(minGap, s.options.Now().Sub(began))) {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-s.soon:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// jittered is up to a tenth less or more, so that many watchers do not poll at once.
func jittered(interval time.Duration) time.Duration {
	return interval + rand.N(interval/5) - interval/10
}

// poller is what polling remembers. It belongs to one goroutine.
type poller struct {
	*store
	scanAfter map[mount]time.Time
}

// all polls everything that is configured. It is false where something failed that may work another time.
func (p *poller) all(ctx context.Context) bool {
	ok := true
	outer := orDefault(p.config.Namespace, events.RootNamespace)
	whole := map[mountName]bool{}
	for _, group := range []struct {
		engine string
		names  []string
		poll   func(context.Context, mount) error
	}{
		{events.EngineKV, p.config.Poll.Mounts, p.secrets},
		{events.EngineDatabase, p.config.Poll.DatabaseMounts, p.roles},
		{events.EngineLDAP, p.config.Poll.LDAPMounts, p.roles},
	} {
		for _, name := range group.names {
			in, err := p.mounts.named(ctx, outer, name)
			if err == nil && in.engine != group.engine {
				err = fmt.Errorf("%s is %s, not %s: %w", name, in.engine, group.engine, errEngine)
			}
			if err == nil {
				whole[mountName{in.namespace, in.path}] = true
				err = group.poll(ctx, in)
			}
			ok = p.report(ctx, name, err) && ok
		}
	}
	if p.config.Poll.Referenced {
		ok = p.report(ctx, "referenced paths", p.references(ctx, whole)) && ok
	}
	return ok
}

// report tells how polling something went, and whether it need not be retried.
func (p *poller) report(ctx context.Context, what string, err error) bool {
	if err == nil {
		p.status.worked(ctx, p.log, what)
		return true
	}
	p.status.failed(ctx, p.log, what, err)
	return errors.Is(err, errUnversioned)
}

// secrets polls a KV v2 mount.
func (p *poller) secrets(ctx context.Context, in mount) error {
	if in.version != kvV2 {
		return fmt.Errorf("%s: %w", in.path, errUnversioned)
	}
	// Before the mount is read, so that what is made meanwhile is not found to have vanished.
	known := p.known(in.namespace, in.path)
	seen, err := p.scan(ctx, in)
	if errors.Is(err, errNoScan) {
		seen, err = p.walk(ctx, in)
	}
	if err != nil {
		return err
	}
	return p.vanished(ctx, in, known, seen)
}

// errNoScan says that the mount cannot be scanned.
var errNoScan = errors.New("the mount cannot be scanned")

// scan reads the metadata of a whole mount by one request, and gives the paths that it observed.
func (p *poller) scan(ctx context.Context, in mount) (map[string]bool, error) {
	if p.options.Now().Before(p.scanAfter[in]) {
		return nil, errNoScan
	}
	var scanned struct {
		KeyInfo map[string]*metadata `json:"key_info"`
	}
	got, err := p.client.get(ctx, in.namespace, in.path+"/detailed-metadata/", url.Values{"scan": {"true"}}, &scanned)
	switch status := code(err); {
	case errors.Is(err, errNotThere) && !got.warned:
		// The mount is empty.
		return nil, nil
	case errors.Is(err, errNotThere), errors.Is(err, errAnswer), status == http.StatusForbidden, status == http.StatusMethodNotAllowed, status == http.StatusBadRequest:
		p.scanAfter[in] = p.options.Now().Add(scanAgain)
		p.log.InfoContext(ctx, "mount cannot be scanned, so it is listed", "mount", in.path)
		return nil, errNoScan
	case err != nil:
		return nil, err
	}
	seen := make(map[string]bool, len(scanned.KeyInfo))
	var first error
	for path, m := range scanned.KeyInfo {
		if strings.HasSuffix(path, "/") || m == nil {
			continue
		}
		o, err := p.seen(in, path, m, got, nil)
		switch {
		case err != nil && first == nil:
			first = err
		case err == nil && o.State != Gone:
			seen[path] = true
			p.emit(ctx, o)
		}
	}
	return seen, first
}

// roles polls the static roles of a mount.
func (p *poller) roles(ctx context.Context, in mount) error {
	names := rolesOf(in.engine)
	known := p.known(in.namespace, in.path)
	listed, _, err := p.client.list(ctx, in.namespace, in.path+"/"+names.list)
	if err != nil {
		return err
	}
	paths := make([]string, 0, len(listed))
	for _, name := range listed {
		if !strings.HasSuffix(name, "/") {
			paths = append(paths, names.secret+"/"+name)
		}
	}
	seen, err := p.each(ctx, in, paths)
	if err != nil {
		return err
	}
	return p.vanished(ctx, in, known, seen)
}

// vanished looks for the paths that are known and were not seen. Those that are not there any more are observed as gone.
func (p *poller) vanished(ctx context.Context, in mount, known []string, seen map[string]bool) error {
	missing := slices.DeleteFunc(slices.Clone(known), func(path string) bool { return seen[path] })
	return p.forEach(ctx, in, missing, func(path string) error {
		o, err := p.readIn(ctx, in, path)
		if err == nil {
			p.emit(ctx, o)
		}
		return err
	})
}

// references polls the paths that somebody reads, but for those in mounts that were polled as a whole. Who reads a path that we
// may not see, or that has no metadata, keeps nobody from being ready.
func (p *poller) references(ctx context.Context, whole map[mountName]bool) error {
	paths, err := p.referenced(ctx)
	if err != nil {
		return err
	}
	byMount := map[mountName][]string{}
	for _, path := range paths {
		if name := (mountName{path.Namespace, path.Mount}); !whole[name] {
			byMount[name] = append(byMount[name], path.Path)
		}
	}
	var first error
	for name, paths := range byMount {
		slices.Sort(paths)
		in := mount{namespace: name.namespace, path: name.mount}
		known := p.known(name.namespace, name.mount)
		err := p.forEach(ctx, in, slices.Compact(paths), func(path string) error {
			o, err := p.read(ctx, events.StorePath{Store: p.config.Name, Namespace: name.namespace, Mount: name.mount, Path: path})
			if err == nil && (o.State != Gone || slices.Contains(known, path)) {
				p.emit(ctx, o)
			}
			return err
		})
		if err != nil && !p.partly(ctx, in, err) {
			first = err
		}
	}
	return first
}
