package build

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestABuildSaysThatItIsStillAtWork(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{
			name: "one that ends says how long it took",
			want: "testbed: building etcd v3 (once, about a minute on two cores)\n" +
				"testbed: still building after 30s of about a minute\n" +
				"testbed: still building after 1m0s of about a minute\n" +
				"testbed: built etcd v3 in 1m10s\n",
		},
		{
			name: "one that fails leaves that to its error", err: errors.New("no space left"),
			want: "testbed: building etcd v3 (once, about a minute on two cores)\n" +
				"testbed: still building after 30s of about a minute\n" +
				"testbed: still building after 1m0s of about a minute\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				built := tell(&log, "etcd v3", "a minute")
				<-time.After(70 * time.Second)
				built(test.err)
				if diff := cmp.Diff(test.want, log.String()); diff != "" {
					t.Errorf("progress (-want +got):\n%s", diff)
				}
			})
		})
	}
}
