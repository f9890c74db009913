package project

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failure is an error of the API server without its text, which may quote the value: "spec.password: Invalid value: ...". A network error does not
// quote it itself, but may contain the error of a proxy or a webhook that does, so its text is omitted, too.
type failure struct {
	// doing is the request: "applying".
	doing string
	code  int32
	why   metav1.StatusReason
	// fields are our own fields that the API server named.
	fields []string
	// owned is true if other field managers own fields, which distinguishes this conflict from one with a concurrent write.
	owned bool
}

// reduce returns the failure for an error of a request that writes the wishes.
func reduce(doing string, err error, wishes []wish) *failure {
	f := &failure{doing: doing}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return f
	}
	status := answer.Status()
	f.code, f.why = status.Code, status.Reason
	if http.StatusText(int(f.code)) == "" || !isReason(f.why) {
		f.why = ""
	}
	if status.Details == nil {
		return f
	}
	for _, cause := range status.Details.Causes {
		f.owned = f.owned || cause.Type == metav1.CauseTypeFieldManagerConflict
		for _, w := range wishes {
			// A path from the API server may contain values, too, such as the keys of a map. Take only paths that equal our own text.
			if strings.TrimPrefix(cause.Field, ".") == w.path.String() && !slices.Contains(f.fields, w.path.String()) {
				f.fields = append(f.fields, w.path.String())
			}
		}
	}
	return f
}

// isReason reports whether a reason is one of those of Kubernetes. A webhook may return any text.
func isReason(why metav1.StatusReason) bool {
	return slices.Contains([]metav1.StatusReason{
		metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonConflict, metav1.StatusReasonNotFound,
		metav1.StatusReasonBadRequest, metav1.StatusReasonInternalError, metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout,
		metav1.StatusReasonTooManyRequests, metav1.StatusReasonServiceUnavailable, metav1.StatusReasonUnauthorized,
		metav1.StatusReasonRequestEntityTooLarge, metav1.StatusReasonAlreadyExists,
	}, why)
}

// Error describes the failure without any text from the API server.
func (f *failure) Error() string {
	text := f.doing
	switch {
	case f.code == 0:
		text += ": no response from the api server"
	case f.why == "":
		text += fmt.Sprintf(": code %d", f.code)
	default:
		text += fmt.Sprintf(": %s (code %d)", f.why, f.code)
	}
	if len(f.fields) > 0 {
		text += ", " + strings.Join(f.fields, ", ")
	}
	return text
}

// Status implements apierrors.APIStatus, so that package kube recognizes the kind of failure.
func (f *failure) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: f.code, Reason: f.why, Message: f.Error()}
}

// reason returns the reason why a write failed, or reasonNone if the same request may succeed soon.
func (f *failure) reason() reason {
	switch f.code {
	case http.StatusConflict:
		if f.owned {
			return reasonConflict
		}
	case http.StatusForbidden:
		return reasonForbidden
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return reasonRejected
	}
	return reasonNone
}

// explain returns the message of a failure that is not retried soon.
func (f *failure) explain(why reason) string {
	about := "the fields"
	if len(f.fields) > 0 {
		about = strings.Join(f.fields, ", ")
	}
	switch why {
	case reasonConflict:
		return fmt.Sprintf("Another field manager owns %s, and nothing is forced.", about)
	case reasonForbidden:
		return fmt.Sprintf("The projector may not write %s: a permission is missing, or admission refuses it (code %d).", about, f.code)
	}
	if f.why == "" {
		return fmt.Sprintf("The API server does not accept %s (code %d).", about, f.code)
	}
	return fmt.Sprintf("The API server does not accept %s (%s, code %d).", about, f.why, f.code)
}

// retried returns the message of a failure that is retried.
func retried(err error) string {
	f, ok := errors.AsType[*failure](err)
	if ok && f.code == http.StatusInternalServerError && f.why == "" {
		// This is how the API server answers a server-side apply that does not match the schema.
		return "The API server refuses it without a reason, as of a field that the kind does not have, or that is no text (code 500). " +
			"It is tried again."
	}
	return "It is tried again: " + err.Error() + "."
}

// reducedLog returns a log for the reflectors. They log complete errors of the API server, and the error of a conversion webhook may contain a value.
func reducedLog(log *slog.Logger) logr.Logger {
	return logr.FromSlogHandler(reducing{log.With("component", "client-go").Handler()})
}

// reducing is a handler that passes errors through reduce, and drops attributes that may be objects.
type reducing struct{ slog.Handler }

// Enabled implements slog.Handler. It is limited to the lowest verbosity of client-go, as everywhere, because higher ones log objects.
func (h reducing) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && h.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h reducing) Handle(ctx context.Context, record slog.Record) error {
	reduced := slog.NewRecord(record.Time, record.Level, record.Message, record.PC)
	record.Attrs(func(a slog.Attr) bool {
		reduced.AddAttrs(reduceAttrs(a)...)
		return true
	})
	return h.Handler.Handle(ctx, reduced)
}

// WithAttrs implements slog.Handler.
func (h reducing) WithAttrs(list []slog.Attr) slog.Handler {
	return reducing{h.Handler.WithAttrs(reduceAttrs(list...))}
}

// WithGroup implements slog.Handler.
func (h reducing) WithGroup(name string) slog.Handler { return reducing{h.Handler.WithGroup(name)} }

func reduceAttrs(list ...slog.Attr) []slog.Attr {
	var reduced []slog.Attr
	for _, a := range list {
		if err, ok := a.Value.Any().(error); ok {
			reduced = append(reduced, slog.Any(a.Key, reduce("listing and watching", err, nil)))
		} else if a.Key == "reflector" || a.Key == "type" || a.Key == "logger" {
			reduced = append(reduced, a)
		}
	}
	return reduced
}
