package workload

import (
	"net/url"
	"strings"
	"testing"
)

func TestAnEndpointIsAPortOfThePodAndAPath(t *testing.T) {
	tests := []struct {
		name, text string
		want       Endpoint
		problem    string
	}{
		{"the form of Prometheus", "http://:9090/-/reload", Endpoint{9090, "/-/reload"}, ""},
		{"no path", "http://:80", Endpoint{80, "/"}, ""},
		{"a path that is escaped", "http://:8080/a%20b/c", Endpoint{8080, "/a%20b/c"}, ""},
		{"the last port", "http://:65535/", Endpoint{65535, "/"}, ""},
		{"a host", "http://169.254.169.254:80/latest", Endpoint{}, "is not a port and a path"},
		{"a user", "http://:secret@host:80/", Endpoint{}, "has no port of 1 to 65535"},
		{"TLS", "https://:443/reload", Endpoint{}, "asks for TLS"},
		{"no port", "http://:/reload", Endpoint{}, "has no port"},
		{"a port with zeros", "http://:0080/reload", Endpoint{}, "has no port"},
		{"a port that is too high", "http://:65536/reload", Endpoint{}, "has no port"},
		{"a query", "http://:80/reload?all=1", Endpoint{}, "has a path with other characters"},
		{"a line break", "http://:80/reload\r\nX: y", Endpoint{}, "has a path with other characters"},
		{"half an escape", "http://:80/%2", Endpoint{}, "has a path with other characters"},
		{"a folder above", "http://:80/a/../b", Endpoint{}, "has a path with a . or .. element"},
		{"a backslash", `http://:80/a\b`, Endpoint{}, "has a path with other characters"},
		{"a long path", "http://:80/" + strings.Repeat("a", 600), Endpoint{}, "is longer than 512 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseEndpoint(tt.text)
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("the error is %v, want %q", err, tt.problem)
			}
			if err != nil && !strings.HasSuffix(err.Error(), "write http://:<port>/<path>, such as http://:9090/-/reload; the host is each pod itself") {
				t.Errorf("%v does not say what is allowed", err)
			}
		})
	}
}

func TestAnEndpointThatIsNotValidIsNotQuoted(t *testing.T) {
	const credential = "s3cr3t"
	for _, text := range []string{
		"http://me:" + credential + "@:9090/reload", "http://:" + credential + "@:9090/reload", "http://:9090/reload?token=" + credential,
		"http://:9090?token=" + credential, "https://:9090/" + credential, credential, "http://:9090/../" + credential, "http://:" + credential,
		"http://:9090/" + credential + strings.Repeat("a", maxEndpoint),
	} {
		if _, err := parseEndpoint(text); err == nil || strings.Contains(err.Error(), credential) {
			t.Errorf("%q has the error %v", text, err)
		}
		deployment := webDeployment("50", map[string]string{AnnotationReload: text})
		w, _ := Read(deployments, deployment, Reading{InPlace: true})
		if w.InPlace != nil || len(w.Problems) != 1 || strings.Contains(w.Problems[0].Error(), credential) {
			t.Errorf("with %q it has the problems %v", text, w.Problems)
		}
	}
}

func FuzzParseEndpoint(f *testing.F) {
	for _, text := range []string{"http://:9090/-/reload", "http://:80", "http://:1/%41", "http://h:80/", "http://:80/..", "https://:1/"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		endpoint, err := parseEndpoint(text)
		if err != nil {
			return
		}
		again, err := parseEndpoint(endpoint.String())
		if err != nil || again != endpoint {
			t.Fatalf("%q is read as %+v, and that again as %+v (%v)", text, endpoint, again, err)
		}
		// The caller adds the address of a pod before it.
		target, err := url.Parse("http://10.0.0.1" + strings.TrimPrefix(endpoint.String(), "http://"))
		if err != nil || target.Hostname() != "10.0.0.1" || target.EscapedPath() != endpoint.Path || target.RawQuery != "" || target.User != nil {
			t.Fatalf("%q leads to %v (%v)", text, target, err)
		}
	})
}
