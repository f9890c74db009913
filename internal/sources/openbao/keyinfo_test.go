package openbao

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"
)

var scanTime = time.Date(2026, 11, 20, 11, 3, 17, 0, time.UTC)

func TestReadKeyInfo(t *testing.T) {
	const live = `{"current_version":2,"custom_metadata":{"a":"b"},"versions":{"1":{"created_time":"2026-11-19T00:00:00Z"},
		"2":{"created_time":"2026-11-20T00:00:00Z","deletion_time":"","destroyed":false}}}`
	created := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	one := []scannedSecret{{path: "shop/db", version: 2, state: Live, at: created, ok: true}}
	for _, tt := range []struct {
		name, body string
		want       []scannedSecret
		broken     bool
	}{
		{
			name: "one secret among other fields", want: one,
			body: `{"auth":null,"data":{"keys":["shop/db",[{}]],"key_info":{"shop/db":` + live + `}},"warnings":null}`,
		},
		{name: "a secret without metadata", body: `{"data":{"key_info":{"a":null,"shop/db":` + live + `}}}`, want: one},
		{
			name: "a secret whose current version is missing", body: `{"data":{"key_info":{"a":{"current_version":3}}}}`,
			want: []scannedSecret{{path: "a", version: 3, state: Live}},
		},
		{
			name: "a secret whose deletion is ahead", want: []scannedSecret{{path: "a", version: 1, state: Live, at: created, ok: true}},
			body: `{"data":{"key_info":{"a":{"current_version":1,"versions":{"1":` +
				`{"created_time":"2026-11-20T00:00:00Z","deletion_time":"2026-12-20T00:00:00Z"}}}}}}`,
		},
		{
			name: "a secret that is destroyed", want: []scannedSecret{{path: "a", version: 1, state: Destroyed, ok: true}},
			body: `{"data":{"key_info":{"a":{"current_version":1,"versions":{"1":{"deletion_time":"2026-11-19T00:00:00Z","destroyed":true}}}}}}`,
		},
		{name: "metadata that is no object", body: `{"data":{"key_info":{"a":[]}}}`, broken: true},
		{name: "a part of an answer", body: `{"data":{"key_info":{"shop/db":` + live, want: one, broken: true},
		{name: "more secrets than are held", body: `{"data":{"key_info":{"shop/db":` + live + `,"shop/mail":` + live + `}}}`, want: one, broken: true},
		{name: "nothing", body: "", broken: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readKeyInfo(strings.NewReader(tt.body), scanTime, 1)
			if (err != nil) != tt.broken {
				t.Errorf("got the error %v, want one: %t", err, tt.broken)
			}
			wantEqual(t, "secrets", tt.want, got)
		})
	}
}

// wholeKeyInfo returns what readKeyInfo returns, decoded at once.
func wholeKeyInfo(body []byte) (map[string]*metadata, error) {
	field := json.RawMessage(body)
	for _, name := range []string{"data", "key_info"} {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(field, &fields); err != nil {
			return nil, err
		}
		if field = fields[name]; field == nil {
			return nil, nil
		}
	}
	var secrets map[string]*metadata
	err := json.Unmarshal(field, &secrets)
	maps.DeleteFunc(secrets, func(_ string, m *metadata) bool { return m == nil })
	return secrets, err
}

func FuzzReadKeyInfo(f *testing.F) {
	f.Add([]byte(scanned))
	f.Add([]byte(`{"data":{"key_info":{"a":{"current_version":1,"versions":{"1":{"created_time":"2026-11-20T11:03:17Z","destroyed":true}}},"b":null}}}`))
	f.Add([]byte(`{"request_id":"a","data":{"keys":[1,{"a":[null]}],"key_info":{}},"warnings":["a"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := readKeyInfo(bytes.NewReader(body), scanTime, maxScanned)
		whole, wholeErr := wholeKeyInfo(body)
		if err != nil || wholeErr != nil || len(got) != len(whole) {
			return // Of names that come twice, the one reads both and the other the last.
		}
		for _, one := range got {
			want := scannedSecret{path: one.path}
			if m := whole[one.path]; m != nil {
				want.version, want.state, want.at, want.ok = m.state(scanTime)
			}
			if one != want {
				t.Errorf("got %+v, want %+v", one, want)
			}
		}
	})
}
