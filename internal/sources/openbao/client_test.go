package openbao

import (
	"strings"
	"testing"
)

func TestErrorsOfAStoreAreOneLineWithoutItsPages(t *testing.T) {
	for _, test := range []struct {
		name, body string
		status     int
		want, kind string
	}{
		{name: "an error of the store", status: 403, body: `{"errors":["1 error occurred:\n\t* permission denied\n\n"]}`, want: "requesting x: the store answered 403: 1 error occurred: * permission denied", kind: "forbidden"},
		{name: "a long one", status: 500, body: `{"errors":["` + strings.Repeat("x", 500) + `"]}`, want: "requesting x: the store answered 500: " + strings.Repeat("x", maxMessage), kind: "status-500"},
		{name: "a page of a proxy", status: 502, body: "<html>canary</html>", want: "requesting x: the store answered 502", kind: "status-502"},
		{name: "an answer that is not JSON", status: 200, body: "canary", want: "requesting x: malformed answer", kind: "malformed"},
		{name: "no connection", status: 0, want: `requesting x: Get "http://bao/v1/x": dialing: unexpected EOF`, kind: "unreachable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			store.say("x", test.status, test.body)
			r := newRig(t, askOnly, func(o *Options) { o.Transport = store })
			_, err := r.feed.pipelines[0].client.get(t.Context(), "root", "x", nil, &metadata{})
			if err == nil {
				t.Fatal("no error")
			}
			wantEqual(t, "the error and its kind", []string{test.want, test.kind}, []string{err.Error(), kind(err)})
		})
	}
}

func TestNoRequestIsMadeOfAPathThatLeadsElsewhere(t *testing.T) {
	store := newFakeStore(kv2)
	r := newRig(t, askOnly, func(o *Options) { o.Transport = store })
	for _, path := range []string{"secret/metadata/../../sys/seal", "secret//x", "secret/./x", ""} {
		if _, err := r.feed.pipelines[0].client.get(t.Context(), "root", path, nil, &metadata{}); err == nil {
			t.Errorf("%q was asked for", path)
		}
	}
	if len(store.asked) > 0 {
		t.Errorf("asked for %v", store.asked)
	}
}
