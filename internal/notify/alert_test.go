package notify

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// alertOf returns the alert for environment variables. ALERT_ON_RELOAD and an address are set by default.
func alertOf(t *testing.T, environment map[string]string) *Alert {
	t.Helper()
	with := map[string]string{"ALERT_ON_RELOAD": "true", "ALERT_WEBHOOK_URL": "http://x.example/" + secretPath}
	maps.Copy(with, environment)
	a, err := AlertFrom(func(name string) string { return with[name] })
	testkit.Must(t, err)
	return a
}

func TestAlertsHaveTheFormsOfReloader(t *testing.T) {
	const (
		line = "Reloader detected changes in *db* of type *SECRET* in namespace *shop*. Hence reloaded *web* of type *Deployment* in namespace *shop*"
		next = "Reloader detected changes in *app* of type *CONFIGMAP* in namespace *shop*. Hence reloaded *web* of type *Deployment* in namespace *shop*"
	)
	for _, tt := range []struct{ sink, info, want, contentType string }{
		{" Slack ", "", `{"attachments":[{"author_name":"Reloader","color":"good","text":"` + line + `\n` + next + `"}]}`, "application/json"},
		{"teams", "", `{"text":"` + line + `\n` + next + `"}`, "application/json"},
		{"gchat", " west ", `{"text":"west : ` + line + `\nwest : ` + next + `"}`, "application/json"},
		{"", "", strings.ReplaceAll(line+"\n"+next, "*", ""), "text/plain"},
	} {
		t.Run(tt.sink, func(t *testing.T) {
			var body, contentType string
			alert := alertOf(t, map[string]string{"ALERT_SINK": tt.sink, "ALERT_ADDITIONAL_INFO": tt.info})
			s, err := newAlertSink(alert, service(func(r *http.Request) (*http.Response, error) {
				content, err := io.ReadAll(r.Body)
				body, contentType = string(content), r.Header.Get("Content-Type")
				if err != nil || r.URL.String() != "http://x.example/"+secretPath {
					t.Errorf("posted to %s, %v", r.URL, err)
				}
				return answer(http.StatusOK, nil)
			}))
			testkit.Must(t, err)
			counters := newCounters()
			s.log = (&testkit.Log{}).Logger()
			if s.metrics, err = newMetrics(counters.meter()); err != nil {
				t.Fatal(err)
			}
			if err := s.send(t.Context(), outcome(events.VerbStarted, "shop", "r1"), 1); err != nil {
				t.Error(err)
			}
			testkit.WantEqual(t, "body", tt.want, body)
			if contentType != tt.contentType {
				t.Errorf("the content type is %s, want %s", contentType, tt.contentType)
			}
		})
	}
}

func TestAlertsAreOffUnlessAskedFor(t *testing.T) {
	for _, value := range []string{"", "false", "1", "True"} {
		a, err := AlertFrom(func(name string) string {
			return map[string]string{"ALERT_ON_RELOAD": value, "ALERT_WEBHOOK_URL": "http://x.example"}[name]
		})
		if a != nil || err != nil {
			t.Errorf("with %q: got %v and %v, want none", value, a, err)
		}
	}
}

func TestAnAlertThatCannotBePostedIsRefusedWithoutQuotingSecrets(t *testing.T) {
	for want, alert := range map[string]Alert{
		"ALERT_WEBHOOK_URL: is not a URL":       {URL: ":" + secretPath},
		"ALERT_WEBHOOK_URL: has another scheme": {URL: "ftp://x/" + secretPath},
		"ALERT_WEBHOOK_URL: is ":                {},
		"ALERT_WEBHOOK_PROXY: is not a URL":     {URL: "http://x.example/" + secretPath, Proxy: ":" + secretPath},
	} {
		_, err := New(Options{Alert: &alert, Logger: (&testkit.Log{}).Logger(), Meter: newCounters().meter()})
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), secretPath) {
			t.Errorf("got %v, want %s", err, want)
		}
		environment := map[string]string{"ALERT_ON_RELOAD": "true", "ALERT_WEBHOOK_URL": alert.URL, "ALERT_WEBHOOK_PROXY": alert.Proxy}
		_, err = AlertFrom(func(name string) string { return environment[name] })
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), secretPath) {
			t.Errorf("read from the environment: got %v, want %s", err, want)
		}
	}
}

func TestAnAlertGoesThroughItsProxyOnceForEachRollout(t *testing.T) {
	var posts atomic.Int32
	targets := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		targets <- r.URL.String()
		if posts.Add(1) == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(proxy.Close)
	s := newStream(t)
	r := s.startWith(Options{Alert: alertOf(t, map[string]string{"ALERT_WEBHOOK_PROXY": proxy.URL})})
	s.tell(outcome(events.VerbStarted, "shop", "r1"), outcome(events.VerbCompleted, "shop", "r1"), outcome(events.VerbFailed, "shop", "r2"))
	testkit.Eventually(t, "every outcome is acknowledged", func() bool { return s.open(alertName) == 0 && posts.Load() >= 2 })
	r.stop()
	for range 2 {
		if target := <-targets; target != "http://x.example/"+secretPath {
			t.Errorf("the proxy was asked for %s", target)
		}
	}
	if got := posts.Load(); got != 2 {
		t.Errorf("%d posts, want the one that failed and its repetition", got)
	}
	testkit.WantEqual(t, "metrics", map[string]int64{alertName + "/raw/sent": 1, alertName + "/raw/retried": 1}, r.counters.results(t))
	if strings.Contains(r.log.String(), secretPath) {
		t.Errorf("the log quotes the address: %s", r.log)
	}
}

// FuzzAlertFrom checks that any environment gives an alert whose body its service accepts, or an error that quotes no secret.
func FuzzAlertFrom(f *testing.F) {
	f.Add("slack", "https://x.example/", "west", "")
	f.Add(" TEAMS ", "http://user:word@x.example:99/?a=b#", "*a*\n\"b", "http://user:word@proxy.example:3128/")
	f.Add("gchat", "ftp://x.example/", "", ":")
	f.Add("", "://", "\xff<script>", "proxy.example")
	f.Add("raw", "http://[::1]:x/", "", "socks5://proxy.example/%zz")
	f.Fuzz(func(t *testing.T, service, address, info, proxy string) {
		if proxy != "" {
			proxy += secretPath
		}
		environment := map[string]string{
			"ALERT_ON_RELOAD": "true", "ALERT_SINK": service, "ALERT_WEBHOOK_URL": address + secretPath, "ALERT_ADDITIONAL_INFO": info,
			"ALERT_WEBHOOK_PROXY": proxy,
		}
		a, err := AlertFrom(func(name string) string { return environment[name] })
		var s *sink
		if err == nil {
			s, err = newAlertSink(a, nil)
		}
		if err != nil {
			if strings.Contains(err.Error(), secretPath) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is no line, or quotes a secret: %q", err)
			}
			return
		}
		body, err := s.body(outcome(events.VerbStarted, "shop", "r1"))
		testkit.Must(t, err)
		if s.poster.header.Get("Content-Type") == "text/plain" {
			if strings.Contains(string(body), "*") {
				t.Errorf("the text has asterisks: %q", body)
			}
			return
		}
		if !json.Valid(body) {
			t.Errorf("the body is no JSON: %q", body)
		}
	})
}
