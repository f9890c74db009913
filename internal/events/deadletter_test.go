package events

import (
	"maps"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestADeadLetterHasTheMessageWithoutTheHeadersOfAServer(t *testing.T) {
	want := DeadLetter{
		Subject: "keyturn.v1.prod-eu.secret.shop.db", Reason: ReasonMalformed, Error: "größer", Seq: 7, Time: testTime,
	}
	letter := want
	letter.Error += "\n" + strings.Repeat("x", maxErrorText)
	want.Error = Shorten(letter.Error, maxErrorText)
	wantHeader := func(rejected, remaining map[string][]string) {
		t.Helper()
		headers := letter.Headers(rejected)
		testkit.WantEqual(t, "what is read", want, ParseDeadLetter(headers))
		maps.DeleteFunc(headers, func(key string, _ []string) bool { return strings.HasPrefix(key, "Keyturn-") })
		testkit.WantEqual(t, "headers of the message", remaining, headers)
	}
	rejected := map[string][]string{"ce-id": {"1"}, "Nats-TTL": {"1h"}, "nats-msg-id": {"1"}}
	wantHeader(rejected, map[string][]string{"ce-id": {"1"}})
	rejected["ce-name"] = []string{strings.Repeat("x", MaxHeaderSize)}
	wantHeader(rejected, map[string][]string{})
}
