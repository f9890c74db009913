package tests

import (
	"bytes"
	"crypto/md5"  //nolint:gosec // What must not be found.
	"crypto/sha1" //nolint:gosec // What must not be found.
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

// formsOf returns the forms in which a part of a value can appear within something larger.
func formsOf(part []byte) map[string][]byte {
	text := string(part)
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string is always valid
	}
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic(err)
	}
	forms := map[string][]byte{
		"raw":                   part,
		"hex":                   []byte(hex.EncodeToString(part)),
		"upper-case hex":        []byte(strings.ToUpper(hex.EncodeToString(part))),
		"spaced hex":            fmt.Appendf(nil, "% x", part),
		"decimal bytes":         bytes.Trim(fmt.Append(nil, part), "[]"),
		"decimal bytes of JSON": bytes.ReplaceAll(bytes.Trim(fmt.Append(nil, part), "[]"), []byte(" "), []byte(",")),
		"JSON":                  bytes.Trim(quoted, `"`),
		"JSON without HTML":     bytes.Trim(bytes.TrimSpace(plain.Bytes()), `"`),
		"a Go string":           []byte(strings.Trim(strconv.Quote(text), `"`)),
		"an ASCII Go string":    []byte(strings.Trim(strconv.QuoteToASCII(text), `"`)),
		"a URL's query":         []byte(url.QueryEscape(text)),
		"a URL's path":          []byte(url.PathEscape(text)),
		"base32":                alignedTo(5, part, func(b []byte) string { return base32.StdEncoding.EncodeToString(b) }, 0),
	}
	for shift := range 3 {
		name := " shifted by " + strconv.Itoa(shift)
		forms["base64"+name] = alignedTo(6, part, base64.StdEncoding.EncodeToString, shift)
		forms["base64url"+name] = alignedTo(6, part, base64.URLEncoding.EncodeToString, shift)
	}
	return forms
}

// alignedTo returns the characters of an encoding, of so many bits each, that depend on the part alone if shift bytes precede
// it and any number of bytes follow.
func alignedTo(bits int, part []byte, encode func([]byte) string, shift int) []byte {
	encoded := encode(append(make([]byte, shift), part...))
	first := (8*shift + bits - 1) / bits
	end := 8 * (shift + len(part)) / bits
	return []byte(encoded[first:end])
}

// digestsOf returns the beginnings of a value's unkeyed hashes, in the encodings in which they can appear. key is the data key
// of the value.
func digestsOf(key string, value []byte) map[string][]byte {
	contents := map[string][]byte{
		"the value":           value,
		"the value and a LF":  append(bytes.Clone(value), '\n'),
		"key=value":           append([]byte(key+"="), value...),
		"key:value":           append([]byte(key+":"), value...),
		"keyvalue":            append([]byte(key), value...),
		"key NUL value":       append([]byte(key+"\x00"), value...),
		"key: value":          append([]byte(key+": "), value...),
		"the value in base64": []byte(base64.StdEncoding.EncodeToString(value)),
		"key=base64":          []byte(key + "=" + base64.StdEncoding.EncodeToString(value)),
	}
	for name, object := range map[string]any{
		"the object in JSON":      map[string][]byte{key: value},
		"the object in text JSON": map[string]string{key: string(value)},
	} {
		if encoded, err := json.Marshal(object); err == nil {
			contents[name] = encoded
		}
	}
	digests := map[string][]byte{}
	for name, content := range contents {
		md, s1 := md5.Sum(content), sha1.Sum(content) //nolint:gosec // What must not be found.
		s256, s512 := sha256.Sum256(content), sha512.Sum512(content)
		for algorithm, sum := range map[string][]byte{"md5": md[:], "sha1": s1[:], "sha256": s256[:], "sha512": s512[:]} {
			what := algorithm + " of " + name
			digests[what+" in hex"] = []byte(hex.EncodeToString(sum[:8]))
			digests[what+" in upper-case hex"] = []byte(strings.ToUpper(hex.EncodeToString(sum[:8])))
			digests[what+" in base64"] = []byte(base64.StdEncoding.EncodeToString(sum[:9]))
			digests[what+" in base64url"] = []byte(base64.URLEncoding.EncodeToString(sum[:9]))
			digests[what+" in bytes"] = sum[:minNeedle]
		}
	}
	return digests
}

func TestALeakIsFoundInEveryForm(t *testing.T) {
	t.Parallel()
	value := []byte("m\x00rker\"<&>\\ \u00e9\n\x80\xff of 32 bytes and some more")
	secret := &corev1.Secret{Data: map[string][]byte{"a": value}}
	protobuf, err := secret.Marshal()
	testkit.Must(t, err)
	inJSON := func(object any) []byte {
		content, err := json.Marshal(object)
		testkit.Must(t, err)
		return content
	}
	tests := []struct {
		name    string
		content []byte
	}{
		{"a Secret in JSON", inJSON(secret)},
		{"a Secret in protobuf", protobuf},
		{"a Secret with a last-applied annotation", inJSON(&corev1.Secret{StringData: map[string]string{"applied": string(inJSON(secret))}})},
		{"a printed Secret", fmt.Append(nil, secret)},
		{"a Secret printed in Go syntax", fmt.Appendf(nil, "%+v", secret.Data)},
		{"a printed string", fmt.Appendf(nil, "password %q is wrong", value)},
		{"hex", fmt.Appendf(nil, "%x", value)},
		{"upper-case hex", fmt.Appendf(nil, "%X", value)},
		{"a JSON string", inJSON(map[string]string{"password": string(value)})},
		{"a header of basic authentication", []byte("Basic " + base64.StdEncoding.EncodeToString(append([]byte("admin:"), value...)))},
		{"base64 after one byte", []byte(base64.StdEncoding.EncodeToString(append([]byte("x"), value...)))},
		{"base64 after two bytes", []byte(base64.RawURLEncoding.EncodeToString(append([]byte("xy"), value...)))},
		{"a URL", []byte("https://example.com/?q=" + url.QueryEscape(string(value)))},
		{"the first half only", value[:len(value)/2+1]},
		{"the second half only", value[len(value)/2:]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := &haystack{}
			h.add("here", tt.content)
			if len(h.leaks(value)) == 0 {
				t.Errorf("nothing found in %q", tt.content)
			}
		})
	}
	t.Run("nothing is found where nothing is", func(t *testing.T) {
		h := &haystack{}
		h.add("here", inJSON(&corev1.Secret{Data: map[string][]byte{"a": []byte("something else that is as long as it")}}))
		if found := h.leaks(value); len(found) > 0 {
			t.Errorf("found %q", found)
		}
	})
	t.Run("a plain hash is found", func(t *testing.T) {
		h := &haystack{}
		h.add("here", fmt.Appendf(nil, "sha:%x", sha256.Sum256([]byte("pin=4711"))))
		if len(h.search(needles("it", digestsOf("pin", []byte("4711"))))) == 0 {
			t.Error("nothing found")
		}
	})
}
