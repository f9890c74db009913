package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/keyturn/keyturn/internal/workload"
)

// readWorkload reads the workload that is rolled for the named one: the one whose pods that one runs, its outermost controller, or the named one
// itself. If a controller does not exist, or workloads own each other, the workload is rolled itself, and has a problem that says so.
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
