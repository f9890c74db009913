package build

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestABuildSaysHowFarItIs(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{
			name: "one that ends says how long it took",
			want: "testbed: building etcd v3, once: 812 packages to compile\n" +
				"testbed: 3 of 812 packages after 30s\n" +
				"testbed: 4 of 812 packages after 1m0s\n" +
				"testbed: built etcd v3 in 1m10s\n",
		},
		{
			name: "one that fails leaves that to its error", err: errors.New("no space left"),
			want: "testbed: building etcd v3, once: 812 packages to compile\n" +
				"testbed: 3 of 812 packages after 30s\n" +
				"testbed: 4 of 812 packages after 1m0s\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				p := newProgress(&log, "etcd v3", 812)
				for _, written := range []string{"internal/abi\nmath\ngo.etcd.io/b", "bolt\n"} {
					if n, err := p.Write([]byte(written)); n != len(written) || err != nil {
						t.Errorf("wrote %d of %d, %v", n, len(written), err)
					}
				}
				<-time.After(40 * time.Second)
				if _, err := p.Write([]byte("net/http\n")); err != nil {
					t.Error(err)
				}
				<-time.After(30 * time.Second)
				p.end(test.err)
				if diff := cmp.Diff(test.want, log.String()); diff != "" {
					t.Errorf("progress (-want +got):\n%s", diff)
				}
			})
		})
	}
}
