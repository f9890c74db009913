package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// chainScenario returns the steps of the demo with a secret store and a certificate.
func chainScenario() []step {
	db, mail, license := written{path: storePaths["db"]}, written{path: storePaths["mail"]}, written{path: storePaths["license"]}
	return []step{
		{
			title:    "Rotate secret/shop/db in the store",
			expected: "its ExternalSecret syncs now instead of within an hour, and both readers of the Secret roll",
			act:      rotateInStore("db", 1), check: tellRotation("db", "web"),
			events: []string{"externalsecret/db", db.source().String(), "secret/db"}, rolls: []string{"deployment/jobs", "deployment/web"},
		},
		{
			title:    "Write two versions of secret/shop/db in quick succession",
			expected: "each reader rolls once, with the latest version",
			act:      rotateInStore("db", 2), check: tellLastVersion,
			events: []string{"externalsecret/db", db.source().String(), "secret/db"}, rolls: []string{"deployment/jobs", "deployment/web"},
		},
		{
			title:    "Write a new version of secret/shop/mail with unchanged content",
			expected: "its ExternalSecret syncs, and once more in case a standby answered; nothing rolls",
			act:      writeTheSame, events: []string{"externalsecret/mail", mail.source().String()},
		},
		{
			title:    "Rotate secret/shop/mail while the watcher is down",
			expected: "the store accepts the write; after a restart the watcher finds it, and the reader rolls once",
			act:      unwatched(rotateUnseen), check: tellRotation("mail", "mailer"),
			events: []string{"externalsecret/mail", mail.source().String(), "secret/mail"}, rolls: []string{"deployment/mailer"},
		},
		{
			title:    "Rotate secret/shop/license, which its ExternalSecret reads only once",
			expected: "refreshPolicy CreatedOnce prevents the sync; a Kubernetes Event says so, and nothing rolls",
			act:      rotateCreatedOnce, events: []string{license.source().String()},
		},
		{
			title:    "Renew certificate/gateway with cert-manager",
			expected: "its one reader rolls once",
			act:      renew, check: tellRenewal,
			events: []string{"certificate/gateway", "secret/gateway-tls"}, rolls: []string{"deployment/gateway"},
		},
	}
}

// rotateInStore writes versions of the secret that an ExternalSecret reads, as fast as the store accepts them.
func rotateInStore(name string, versions int) func(context.Context, *stage, *report) error {
	return func(ctx context.Context, s *stage, out *report) error {
		for range versions {
			if err := s.put(ctx, storePaths[name]); err != nil {
				return err
			}
			out.did("wrote %s", s.chain.last)
		}
		return nil
	}
}

// tellRotation shows the timeline of the latest version, from the store to the pods of a Deployment.
func tellRotation(name, reader string) func(context.Context, *stage, *report) error {
	return func(ctx context.Context, s *stage, out *report) error {
		last := s.chain.last
		rotated, err := s.stream.find(ctx, last.at, last.source(), func(change events.Change) bool { return change.ID() == last.event() })
		if err != nil {
			return err
		}
		secret := events.Source{Kind: events.KindSecret, Namespace: namespace, Name: name}
		changed, err := s.stream.find(ctx, last.at, secret, func(change events.Change) bool {
			return change.Cause != nil && change.Cause.Event == last.event()
		})
		if err != nil {
			return err
		}
		forced, synced := syncTimes(s.chain.syncs.all(name), last.event())
		err = out.timeline(append([]mark{
			{"written", last.at, last.String()},
			{"seen", rotated.Time, "event openbao.rotated: " + rotated.ID()},
			{"forced", forced, "annotation external-secrets.io/force-sync on externalsecret/" + name},
			{"synced", synced, "status of externalsecret/" + name},
			{"changed", changed.Time, "event secret.changed: secret/" + name + " by " + changed.Cause.Source},
		}, s.rolled("deployment/"+reader)...)...)
		if err != nil {
			return err
		}
		if err := s.checkContent(ctx, name, true); err != nil {
			return err
		}
		return s.tellCause(ctx, out, reader)
	}
}

// rolled returns the last marks of a timeline, those of a workload.
func (s *stage) rolled(workload string) []mark {
	seen := s.workloads.all()[workload]
	return []mark{{"patched", seen.patched, workload}, {"ready", seen.ready, plural(int(seen.pods), "new pod") + " of " + workload}}
}

// tellCause shows the cause that a Deployment records for its rollout.
func (s *stage) tellCause(ctx context.Context, out *report, name string) error {
	deployment, err := s.client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading deployment/%s: %w", name, err)
	}
	out.line("result", "deployment/%s records the cause: %s", name, deployment.Spec.Template.Annotations["keyturn.dev/cause"])
	return nil
}

func tellLastVersion(ctx context.Context, s *stage, out *report) error {
	if err := s.checkContent(ctx, "db", true); err != nil {
		return err
	}
	count := syncCount(s.chain.syncs.all("db"), out.step)
	out.line("result", "externalsecret/db synced %s; secret/db has the content of version %d", times(count), s.chain.last.version)
	return nil
}

func writeTheSame(ctx context.Context, s *stage, out *report) error {
	path := storePaths["mail"]
	current, err := s.chain.store.Client().KVv2(mount).Get(ctx, path)
	if err != nil {
		return fmt.Errorf("reading %s in the store: %w", path, err)
	}
	value, _ := current.Data[secretKey].(string)
	if err := s.putValue(ctx, path, value); err != nil {
		return err
	}
	out.did("wrote %s, with the content of version %d", s.chain.last, current.VersionMetadata.Version)
	if err := s.tellSkipped(ctx, out, "mail"); err != nil {
		return err
	}
	count := syncCount(s.chain.syncs.all("mail"), s.chain.last.at)
	if count == 0 {
		return errors.New("externalsecret/mail did not sync")
	}
	out.line("result", "it synced %s", times(count))
	return nil
}

// tellSkipped waits for the outcome that says why the latest version had no effect on an ExternalSecret, and shows it.
func (s *stage) tellSkipped(ctx context.Context, out *report, name string) error {
	last := s.chain.last
	// Wait for the event first: the outcome asked for below must be that of the latest event.
	if _, err := s.stream.done(ctx, s.published, []string{last.source().String()}); err != nil {
		return err
	}
	workload := events.Workload{Kind: string(events.KindExternalSecret), Namespace: namespace, Name: name}
	outcome, err := s.stream.skipped(ctx, last.source().String(), workload)
	if err != nil {
		return err
	}
	if outcome.Cause != last.event() {
		return fmt.Errorf("the last outcome for %s was caused by %s, want %s", workload, outcome.Cause, last.event())
	}
	out.line("result", "%s: %s", workload, outcome.Message)
	return nil
}

func rotateUnseen(ctx context.Context, s *stage, out *report) error {
	asked := time.Now()
	err := rotateInStore("mail", 1)(ctx, s, out)
	if err == nil {
		out.line("result", "the store accepted the write within %d ms", time.Since(asked).Milliseconds())
	}
	return err
}

func rotateCreatedOnce(ctx context.Context, s *stage, out *report) error {
	if err := rotateInStore("license", 1)(ctx, s, out); err != nil {
		return err
	}
	told, err := s.kubernetesEvents(ctx, "ExternalSecret", "license", 1)
	if err != nil {
		return err
	}
	out.line("result", "Kubernetes Event %s on externalsecret/license, a %s:", told[0].Reason, strings.ToLower(told[0].Type))
	out.line("result", "%s", told[0].Message)
	return s.checkContent(ctx, "license", false)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
