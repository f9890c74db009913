package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// errMissing is wrapped if the API server has no workload with a given name, or does not serve its kind.
var errMissing = errors.New("there is no")

var shortNames = map[string]string{"deploy": "deployment", "sts": "statefulset", "ds": "daemonset", "cj": "cronjob"}

// lettersAndDigits are the valid characters in the name of a kind.
const lettersAndDigits = "abcdefghijklmnopqrstuvwxyz0123456789"

// WorkloadNamed parses the name of a workload in outcomes, such as "deployment/web", without namespace. It accepts unknown kinds, because they may
// come from the actuator's --targets-config, which is unknown here.
func WorkloadNamed(text string) (events.Workload, error) {
	kinds := append(workload.BuiltIn(), workload.ArgoRollout(), workload.Job())
	named, name, _ := strings.Cut(text, "/")
	if kind, known := kindOf(kinds, named); known {
		named = kind.Name
	}
	isSource := slices.Contains(events.SourceKinds(), events.Kind(named))
	if named == "" || strings.Trim(named, lettersAndDigits) != "" || isSource || name == "" || strings.Contains(name, "/") {
		return events.Workload{}, fmt.Errorf("%q, want <kind>/<name> such as deployment/web, with a kind of %s, externalsecret, or of "+
			"--targets-config", text, strings.Join(kinds.Names(), ", "))
	}
	return events.Workload{Kind: named, Name: name}, nil
}

// kindOf returns a kind by one of the names that kubectl accepts: deployment, deployments, deployment.apps, deployment.v1.apps and deploy.
func kindOf(kinds workload.Kinds, name string) (workload.Kind, bool) {
	name, of, _ := strings.Cut(strings.ToLower(name), ".")
	if long, short := shortNames[name]; short {
		name = long
	}
	for _, kind := range kinds {
		plural, _, _ := strings.Cut(kind.Resource, ".")
		group, _, _ := strings.Cut(kind.APIVersion, "/")
		if (kind.Name == name || plural == name) && (strings.HasPrefix(group, of) || strings.HasSuffix(of, "."+group)) {
			return kind, true
		}
	}
	return workload.Kind{}, false
}

// readWorkload returns the workload that Keyturn rolls on behalf of the named one: the one whose pods that one runs, its topmost controller, or the
// named one itself. If a controller does not exist, or workloads own each other, the named workload is rolled itself, and has a problem about it.
func readWorkload(ctx context.Context, options ExplainOptions, name, namespace string) (*workload.Workload, error) {
	first, err := readNamed(ctx, options, name, namespace)
	if err != nil {
		return nil, err
	}
	at := first
	for range workload.MaxOwners {
		if at.Runs == (workload.Key{}) || options.ignores(at.ID.Kind) {
			return at, nil
		}
		through := at.Runs.Kind + "/" + at.Runs.Name
		next, err := readNamed(ctx, options, through, namespace)
		switch {
		case errors.Is(err, errMissing) && at.Owner != (workload.Key{}):
			return rolledItself(at, fmt.Errorf(
				"%s is rolled itself: its controller %s is not there, or the apiVersion in --targets-config is not served", at.ID, through,
			)), nil
		case err != nil:
			return nil, err
		case next.Key() == first.Key():
			return rolledItself(first, fmt.Errorf("%s and its controllers own each other, and one of them is rolled itself", first.ID)), nil
		}
		at = next
	}
	return rolledItself(first, fmt.Errorf("%s is rolled itself: its controllers have too many controllers", first.ID)), nil
}

func rolledItself(w *workload.Workload, why error) *workload.Workload {
	w = w.Unowned()
	w.Problems = append(w.Problems, why)
	return w
}

func readNamed(ctx context.Context, options ExplainOptions, name, namespace string) (*workload.Workload, error) {
	kinds := append(workload.BuiltIn(), workload.ArgoRollout(), workload.Job())
	for _, rolled := range options.Kinds {
		if _, known := kinds.Named(rolled.Name); known {
			kinds = kinds.With(rolled) // Its pods may be replaced in another way.
		} else {
			kinds = append(kinds, rolled)
		}
	}
	kindName, object, ok := strings.Cut(name, "/")
	kind, known := kindOf(kinds, kindName)
	if !ok || !known || object == "" {
		return nil, fmt.Errorf("workload %q: want <kind>/<name>, with a kind of %s", name, strings.Join(kinds.Names(), ", "))
	}
	obj, err := kind.Objects(options.Clients, namespace).Get(ctx, object)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w %s in namespace %s", errMissing, name, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s in namespace %s: %w", name, namespace, err)
	}
	w, ok := workload.Read(kind, obj, options.Reading)
	if !ok {
		return nil, fmt.Errorf("reading %s in namespace %s: the API server did not return a %s", name, namespace, kind.Title)
	}
	return w, nil
}

// readNamespace reads the annotations of a namespace. It returns false without permission to read them.
func readNamespace(ctx context.Context, options ExplainOptions, name string) (workload.Namespace, bool, error) {
	namespace, err := options.Clients.Typed.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return workload.Namespace{}, false, nil
	case apierrors.IsNotFound(err):
		return workload.Namespace{}, true, nil
	case err != nil:
		return workload.Namespace{}, false, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return workload.ReadNamespace(name, namespace.Annotations), true, nil
}
